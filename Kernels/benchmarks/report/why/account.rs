//! What bounds a kernel, from its counters.

use super::Profile;
use std::fmt::{self, Display, Formatter};

/// A unit that is busier than this has no room for more.
const BUSY: f64 = 80.0;
/// SMs that work for less than this share of the time wait for the others.
const SPREAD: f64 = 85.0;

/// As ncu names them, and as we do.
const UNITS: [(&str, &str); 4] = [
    ("DRAM Throughput", "memory"),
    ("L2 Cache Throughput", "L2"),
    ("L1/TEX Cache Throughput", "L1"),
    ("Compute (SM) Throughput", "SM"),
];

/// What a profile says about who waits for whom.
#[derive(Debug, Clone, PartialEq)]
pub struct Account {
    cycles: Option<f64>,
    /// The busiest unit, and its share of what it could do.
    busiest: Option<(&'static str, f64)>,
    /// Share of the time in which an SM has a block, on average.
    spread: Option<f64>,
    waves: Option<f64>,
}

impl Account {
    pub fn of(profile: &Profile) -> Account {
        let cycles = profile.value("Elapsed Cycles");
        let active = profile.value("SM Active Cycles");
        let shares = UNITS.map(|(metric, unit)| Some((unit, profile.value(metric)?)));
        Account {
            cycles,
            busiest: (shares.into_iter().flatten()).max_by(|a, b| a.1.total_cmp(&b.1)),
            spread: active.zip(cycles).map(|(active, all)| 100.0 * active / all),
            waves: profile.value("Waves Per SM"),
        }
    }

    /// The ratio at the same clock.
    pub fn cycles_over(&self, other: &Account) -> String {
        let ratio = self.cycles.zip(other.cycles).map(|(own, of)| own / of);
        ratio.map_or("-".to_owned(), record::ratio_text)
    }
}

impl Display for Account {
    fn fmt(&self, to: &mut Formatter) -> fmt::Result {
        let Some((unit, share)) = self.busiest else {
            return to.write_str("not counted");
        };
        let spread = self.spread.filter(|spread| *spread < SPREAD);
        match spread {
            _ if share >= BUSY => write!(to, "{unit} busy {share:.0} %")?,
            Some(spread) => write!(
                to,
                "SMs have blocks {spread:.0} % of the time; {unit} {share:.0} %"
            )?,
            None => write!(to, "latency: nothing busier than {unit}, {share:.0} %")?,
        }
        match self.waves {
            Some(waves) => write!(to, "; {waves:.2} waves"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::read_csv;
    use super::*;

    fn account(metrics: &[(&str, &str)]) -> Account {
        let mut text = String::from(
            "\"ID\",\"Kernel Name\",\"Metric Name\",\"Metric Unit\",\"Metric Value\"\n",
        );
        for (name, value) in metrics {
            text += &format!("\"0\",\"k\",\"{name}\",\"\",\"{value}\"\n");
        }
        Account::of(&read_csv(&text).unwrap()[0])
    }

    #[test]
    fn what_bounds_is_said() {
        let full = account(&[
            ("Elapsed Cycles", "1,000"),
            ("SM Active Cycles", "500"),
            ("DRAM Throughput", "91.4"),
            ("Compute (SM) Throughput", "30"),
        ]);
        assert_eq!(full.to_string(), "memory busy 91 %");
        let tail = account(&[
            ("Elapsed Cycles", "1250"),
            ("SM Active Cycles", "750"),
            ("DRAM Throughput", "20"),
            ("Compute (SM) Throughput", "55"),
            ("Waves Per SM", "1.06"),
        ]);
        assert_eq!(
            tail.to_string(),
            "SMs have blocks 60 % of the time; SM 55 %; 1.06 waves"
        );
        assert_eq!(full.cycles_over(&tail), record::ratio_text(0.8));
        let waits = account(&[
            ("Elapsed Cycles", "1000"),
            ("SM Active Cycles", "950"),
            ("L2 Cache Throughput", "31"),
        ]);
        assert_eq!(waits.to_string(), "latency: nothing busier than L2, 31 %");
        assert_eq!(account(&[("Duration", "1")]).to_string(), "not counted");
    }
}
