//! Device readings that change while it works.

use serde::{Deserialize, Serialize};

/// One reading. `None` if the device or its library does not provide it; `notes` says why.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceState {
    /// Core (SM) clock now.
    pub clock_mhz: Option<f64>,
    /// Maximum core clock.
    pub clock_max_mhz: Option<f64>,
    /// Core clock set for applications.
    pub clock_application_mhz: Option<f64>,
    /// Memory clock now.
    pub memory_clock_mhz: Option<f64>,
    /// Maximum memory clock.
    pub memory_clock_max_mhz: Option<f64>,
    /// Whether the clocks are known to be locked; `Some(false)` means not known to be.
    pub clocks_locked: Option<bool>,
    /// Power drawn now.
    pub power_w: Option<f64>,
    /// Power limit in force.
    pub power_limit_w: Option<f64>,
    /// Die temperature.
    pub temperature_c: Option<f64>,
    /// Why the clock is lower than it could be, by NVML's names in snake case.
    pub throttle_reasons: Vec<String>,
    /// Whether ECC is on.
    pub ecc: Option<bool>,
    /// Driver version.
    pub driver: Option<String>,
    /// Newest CUDA version that the driver supports.
    pub cuda: Option<String>,
    /// What could not be read, and why.
    pub notes: Vec<String>,
}

impl DeviceState {
    /// Caveats about this state for a reader of the numbers.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = self.notes.clone();
        if self.clocks_locked == Some(false) {
            warnings.push(
                "clocks are not locked: absolute times vary with heat and power; trust the paired \
                ratios, or lock the clocks if you may (nvidia-smi -lgc)"
                    .to_string(),
            );
        }
        for reason in self
            .throttle_reasons
            .iter()
            .filter(|reason| *reason != "gpu_idle")
        {
            warnings.push(format!("the clock is held down: {reason}"));
        }
        warnings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warns_of_free_clocks_and_throttling_but_not_of_idling() {
        let state = DeviceState {
            clocks_locked: Some(false),
            throttle_reasons: vec!["gpu_idle".into(), "sw_power_cap".into()],
            ..DeviceState::default()
        };
        let warnings = state.warnings();
        assert_eq!(warnings.len(), 2);
        assert!(warnings[1].contains("sw_power_cap"));
    }
}
