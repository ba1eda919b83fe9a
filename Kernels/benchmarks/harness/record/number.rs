//! Numbers for people. A missing number is `-`, never 0.

use crate::Row;

/// The placeholder for a missing number.
pub(crate) const MISSING: &str = "-";

/// A value with about `digits` significant digits and no exponent; digits before the point are
/// never cut.
pub fn significant(value: f64, digits: usize) -> String {
    if !value.is_finite() {
        return MISSING.to_owned();
    }
    if value == 0.0 {
        return "0".to_owned();
    }
    let decimals_at = |value: f64| {
        let exponent = value.abs().log10().floor() as i64;
        (digits as i64 - 1 - exponent).max(0) as usize
    };
    let text = format!("{:.*}", decimals_at(value), value);
    // 9.996 at three digits rounds up to 10.00: repeat with the exponent of the result.
    let rounded: f64 = text.parse().unwrap_or(value);
    format!(
        "{:.*}",
        decimals_at(rounded).min(decimals_at(value)),
        rounded
    )
}

/// A time in microseconds: four digits, which is what a 0.1 % measurement supports.
pub fn time_us_text(time_us: f64) -> String {
    significant(time_us, 4)
}

/// `1 workload`, `2 workloads`.
pub fn count_text(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// A ratio: three decimals, since intervals are a few thousandths wide.
pub fn ratio_text(ratio: f64) -> String {
    if ratio >= 100.0 {
        significant(ratio, 4)
    } else {
        format!("{ratio:.3}")
    }
}

/// `[low, high]` of a ratio.
pub fn interval_text(low: f64, high: f64) -> String {
    format!("[{}, {}]", ratio_text(low), ratio_text(high))
}

/// A share as percent: three digits.
pub fn percent_text(share: f64) -> String {
    format!("{} %", significant(100.0 * share, 3))
}

pub(crate) fn or_missing(value: Option<f64>, text: impl Fn(f64) -> String) -> String {
    value.map_or_else(|| MISSING.to_owned(), text)
}

/// The units of rates in a table: a CPU's are thousandths of a GPU's.
pub(crate) struct RateUnits {
    pub(crate) flops_title: &'static str,
    pub(crate) bytes_title: &'static str,
    flops_scale: f64,
    bytes_scale: f64,
}

impl RateUnits {
    /// Below this many tera the units are giga.
    const TERA_MIN: f64 = 0.1;

    pub(crate) fn of(rows: &[&Row]) -> RateUnits {
        let giga = |of: fn(&Row) -> Option<f64>| {
            let rates = rows.iter().filter_map(|row| of(row));
            rates
                .max_by(f64::total_cmp)
                .is_some_and(|most| most < Self::TERA_MIN)
        };
        let (flops_title, flops_scale) = match giga(|row| row.metrics.tflops) {
            true => ("GFLOP/s", 1e3),
            false => ("TFLOP/s", 1.0),
        };
        let (bytes_title, bytes_scale) = match giga(|row| row.metrics.tbps) {
            true => ("GB/s", 1e3),
            false => ("TB/s", 1.0),
        };
        RateUnits {
            flops_title,
            bytes_title,
            flops_scale,
            bytes_scale,
        }
    }

    pub(crate) fn flops(&self, row: &Row) -> String {
        or_missing(row.metrics.tflops, |rate| {
            significant(self.flops_scale * rate, 4)
        })
    }

    pub(crate) fn bytes(&self, row: &Row) -> String {
        or_missing(row.metrics.tbps, |rate| {
            significant(self.bytes_scale * rate, 4)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn significant_digits() {
        for (value, digits, expected) in [
            (5.123456, 4, "5.123"),
            (0.0123456, 4, "0.01235"),
            (12345.678, 4, "12346"),
            (9.9996, 4, "10.00"),
            (99.96, 3, "100"),
            (-2.5, 2, "-2.5"),
            (0.0, 3, "0"),
            (f64::NAN, 3, "-"),
        ] {
            assert_eq!(significant(value, digits), expected);
        }
    }

    #[test]
    fn missing_is_a_dash() {
        assert_eq!(or_missing(None, time_us_text), "-");
        assert_eq!(or_missing(Some(12.0), time_us_text), "12.00");
    }

    #[test]
    fn counts() {
        assert_eq!(count_text(1, "workload"), "1 workload");
        assert_eq!(count_text(0, "workload"), "0 workloads");
    }
}
