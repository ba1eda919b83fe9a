//! Which samples ran at too low a clock to count.

use crate::summary::{quantile, sorted};
use serde::{Deserialize, Serialize};

/// Drops samples that ran below a share of the reference clock: with a throttled GPU they measure
/// the cooling, not the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ClockFilter {
    pub fraction: f64,
}

impl Default for ClockFilter {
    fn default() -> Self {
        ClockFilter { fraction: 0.75 }
    }
}

impl ClockFilter {
    /// A sample without a clock reading is kept.
    pub fn keeps(&self, clock_mhz: Option<f64>, reference_mhz: Option<f64>) -> bool {
        match (clock_mhz, reference_mhz) {
            (Some(clock), Some(reference)) => clock >= self.fraction * reference,
            _ => true,
        }
    }

    /// Indices of the samples to drop.
    pub fn dropped(&self, clocks_mhz: &[Option<f64>], reference_mhz: Option<f64>) -> Vec<usize> {
        (0..clocks_mhz.len())
            .filter(|&i| !self.keeps(clocks_mhz[i], reference_mhz))
            .collect()
    }
}

/// The clock that a run reached: the 95th percentile over its samples. Not the maximum, which one
/// bad reading can set, and not the median, which a long throttle would drag down.
pub fn reference_clock_mhz(clocks_mhz: impl IntoIterator<Item = f64>) -> Option<f64> {
    let clocks: Vec<f64> = clocks_mhz
        .into_iter()
        .filter(|clock| clock.is_finite())
        .collect();
    (!clocks.is_empty()).then(|| quantile(&sorted(&clocks), 0.95))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_below_three_quarters() {
        let clocks = [Some(1980.0), Some(1484.0), Some(1486.0), None];
        assert_eq!(ClockFilter::default().dropped(&clocks, Some(1980.0)), [1]);
        assert!(ClockFilter::default().dropped(&clocks, None).is_empty());
    }

    #[test]
    fn reference_survives_a_long_throttle_and_a_spike() {
        let mut clocks = vec![1200.0; 60];
        clocks.extend(vec![1980.0; 39]);
        clocks.push(9999.0);
        assert_eq!(reference_clock_mhz(clocks), Some(1980.0));
        assert_eq!(reference_clock_mhz([f64::NAN]), None);
    }
}
