//! What became of one contender on one workload, as the worker tells it.

use contender::Facts;
use device::DeviceState;
use gate::{Errors, Failure, FailureKind};
use serde::{Deserialize, Serialize};
use timing::{Timing, Validity};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Unsupported(String),
    Wrong {
        reason: String,
        errors: Vec<Errors>,
    },
    Error(String),
    /// Ended by the watchdog.
    Timeout(String),
    /// Measured, and then something was found that spoils all measurements of the race.
    Spoilt(String),
    Measured(Box<Measured>),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Empty where verification was skipped.
    pub errors: Vec<Errors>,
    pub verified: bool,
    pub facts: Facts,
    pub timing: Timing,
    pub validity: Validity,
    /// Of one execution; none where it was not asked for or the device has no meter.
    pub energy_j: Option<f64>,
    /// The device right after the race.
    pub state: DeviceState,
}

impl From<&Failure> for Outcome {
    fn from(failure: &Failure) -> Self {
        match failure.kind() {
            FailureKind::Wrong => Outcome::Wrong {
                reason: failure.to_string(),
                errors: failure.errors().to_vec(),
            },
            FailureKind::Error => Outcome::Error(failure.to_string()),
        }
    }
}
