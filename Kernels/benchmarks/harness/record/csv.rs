//! One line per row, for spreadsheets and data frames (RFC 4180). A missing number is an empty field.

use crate::{Best, Device, Errors, ResultFile, Row, Time};

const COLUMNS: [&str; 57] = [
    "device",
    "device_name",
    "op",
    "suite",
    "workload",
    "axes",
    "contender",
    "kind",
    "version",
    "arch",
    "dtype",
    "status",
    "verified",
    "reason",
    "median_us",
    "mean_us",
    "std_us",
    "min_us",
    "max_us",
    "p5_us",
    "p95_us",
    "p99_us",
    "mad_us",
    "samples",
    "dropped",
    "enqueue_us",
    "kernel_us",
    "tflops",
    "tbps",
    "roof",
    "roof_share",
    "queries_per_second",
    "energy_j",
    "clock_mhz",
    "cycles",
    "baseline",
    "speedup",
    "speedup_low",
    "speedup_high",
    "verdict",
    "speedup_at_equal_clock",
    "best_other",
    "best_contested_by",
    "best_ratio",
    "best_low",
    "best_high",
    "best_verdict",
    "best_at_equal_clock",
    "plan_us",
    "plus_plan_1_us",
    "plus_plan_32_us",
    "best_ratio_plan_1",
    "best_ratio_plan_32",
    "max_abs_error",
    "rel_l2_error",
    "repro",
    "libraries",
];

/// The rows as CSV with a header line; only the JSON file has raw samples.
pub fn to_csv(file: &ResultFile) -> String {
    let mut text = line(COLUMNS.map(str::to_owned));
    for row in &file.rows {
        text += &line(fields(&file.meta.device, row));
    }
    text
}

fn fields(device: &Device, row: &Row) -> [String; 57] {
    let time = row.time.as_ref();
    let time_field = |of: fn(&Time) -> f64| number(time.map(of));
    let speedup = row.speedup.as_ref();
    let worst = |of: fn(&Errors) -> Option<f64>| {
        number(row.errors.iter().filter_map(of).max_by(f64::total_cmp))
    };
    let metrics = &row.metrics;
    let best = row.against_best.as_ref();
    let best_number = |of: fn(&Best) -> f64| number(best.map(of));
    // One layer's share of a plan that this many layers use.
    let with_plan = |layers: f64| {
        let sum = |(time, plan_us): (&Time, f64)| time.median_us + plan_us / layers;
        number(time.zip(row.plan_us()).map(sum))
    };
    [
        device.kind.to_string(),
        device.name.clone(),
        row.op.clone(),
        row.workload.suite.clone(),
        row.workload.name.clone(),
        axes(row),
        row.contender.name.clone(),
        row.contender.kind.to_string(),
        row.contender.version.clone(),
        row.arch.clone(),
        row.dtype.clone(),
        row.status.to_string(),
        row.verified.to_string(),
        row.reason.clone().unwrap_or_default(),
        time_field(|time| time.median_us),
        time_field(|time| time.mean_us),
        number(time.and_then(|time| time.std_us)),
        time_field(|time| time.min_us),
        time_field(|time| time.max_us),
        time_field(|time| time.p5_us),
        time_field(|time| time.p95_us),
        time_field(|time| time.p99_us),
        time_field(|time| time.mad_us),
        time.map(|time| time.count.to_string()).unwrap_or_default(),
        time.map(|_| row.dropped.len().to_string())
            .unwrap_or_default(),
        number(row.enqueue_us),
        number(row.kernel_us),
        number(metrics.tflops),
        number(metrics.tbps),
        metrics.roof.clone().unwrap_or_default(),
        number(metrics.roof_share),
        number(metrics.queries_per_second),
        number(metrics.energy_j),
        number(row.clocks.as_ref().and_then(|clocks| clocks.median_mhz)),
        number(metrics.cycles),
        speedup
            .map(|speedup| speedup.baseline.clone())
            .unwrap_or_default(),
        number(speedup.map(|speedup| speedup.ratio)),
        number(speedup.map(|speedup| speedup.low)),
        number(speedup.map(|speedup| speedup.high)),
        speedup
            .map(|speedup| speedup.verdict.to_string())
            .unwrap_or_default(),
        number(speedup.and_then(|speedup| speedup.at_equal_clock)),
        best.map(|best| best.speedup.baseline.clone())
            .unwrap_or_default(),
        best.map(|best| best.contested_by.join("; "))
            .unwrap_or_default(),
        best_number(|best| best.speedup.ratio),
        best_number(|best| best.speedup.low),
        best_number(|best| best.speedup.high),
        best.map(|best| best.speedup.verdict.to_string())
            .unwrap_or_default(),
        number(best.and_then(|best| best.speedup.at_equal_clock)),
        number(row.plan_us()),
        with_plan(1.0),
        with_plan(32.0),
        number(best.and_then(|best| best.ratio_plan_1)),
        number(best.and_then(|best| best.ratio_plan_32)),
        worst(|errors| errors.max_abs),
        worst(|errors| errors.rel_l2),
        row.repro.clone(),
        libraries(row),
    ]
}

fn libraries(row: &Row) -> String {
    let libraries = row.contender.libraries.iter();
    libraries
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join("; ")
}

fn axes(row: &Row) -> String {
    let pair = |(name, value): (&String, &serde_json::Value)| match value.as_str() {
        Some(text) => format!("{name}={text}"),
        None => format!("{name}={value}"),
    };
    row.workload
        .axes
        .iter()
        .map(pair)
        .collect::<Vec<_>>()
        .join(" ")
}

fn number(value: Option<f64>) -> String {
    value
        .filter(|value| value.is_finite())
        .map(|value| value.to_string())
        .unwrap_or_default()
}

fn line<const N: usize>(fields: [String; N]) -> String {
    let mut line = fields.map(|field| quoted(&field)).join(",");
    line += "\r\n";
    line
}

fn quoted(field: &str) -> String {
    // A spreadsheet takes these for formulas; an apostrophe makes them text.
    let formula =
        field.starts_with(['=', '+', '-', '@', '\t', '\r']) && field.parse::<f64>().is_err();
    let field = &format!("{}{field}", if formula { "'" } else { "" });
    match field.contains(['"', ',', '\r', '\n']) {
        true => format!("\"{}\"", field.replace('"', "\"\"")),
        false => field.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_never_a_formula() {
        for formula in [
            "=1+1",
            "+cmd|' /C calc'!A0",
            "-1+1",
            "@SUM(A1)",
            "\t=1",
            "\r=1",
        ] {
            assert!(quoted(formula).trim_start_matches('"').starts_with('\''));
        }
        for number in ["-2.5", "+1e9", "12"] {
            assert_eq!(quoted(number), number);
        }
    }

    #[test]
    fn quotes_what_needs_quotes() {
        assert_eq!(quoted("plain"), "plain");
        assert_eq!(quoted("a,b"), "\"a,b\"");
        assert_eq!(quoted("say \"x\"\n"), "\"say \"\"x\"\"\n\"");
    }
}
