//! The outcome of one contender on one workload, as reported by the worker.

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
    /// Killed by the watchdog.
    Timeout(String),
    /// Something was found that invalidates the measurement, or the whole race.
    Spoilt(String),
    Measured(Box<Measured>),
    /// Right on a device without a clock.
    Emulated(Box<Emulated>),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Emulated {
    pub errors: Vec<Errors>,
    /// All kinds of inputs but the usual one.
    pub also_right_on: Vec<String>,
    /// How much was compared with the reference.
    pub reference: String,
    /// The contender's own, and what its kernels did.
    pub facts: Facts,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Empty if verification was skipped.
    pub errors: Vec<Errors>,
    pub verified: bool,
    /// Other kinds of inputs than the timed ones, on which it passed the gate.
    pub also_right_on: Vec<String>,
    /// How much was compared with the reference; none if nothing was verified.
    pub reference: Option<String>,
    pub facts: Facts,
    pub timing: Timing,
    pub validity: Validity,
    /// Per execution; none if not requested or if the device has no meter.
    pub energy_j: Option<f64>,
    /// The device right after the race.
    pub state: DeviceState,
}

impl Outcome {
    /// Why it has nothing to compare; none for whoever is right, or does not take part.
    pub fn failure(&self) -> Option<&str> {
        match self {
            Self::Wrong { reason, .. }
            | Self::Error(reason)
            | Self::Timeout(reason)
            | Self::Spoilt(reason) => Some(reason),
            Self::Measured(measured) => measured.validity.reason.as_deref(),
            Self::Unsupported(_) | Self::Emulated(_) => None,
        }
    }
}

impl From<&Failure> for Outcome {
    fn from(failure: &Failure) -> Self {
        match failure.kind() {
            FailureKind::Wrong => Outcome::Wrong {
                reason: failure.to_string(),
                errors: failure.errors().to_vec(),
            },
            FailureKind::Error => Outcome::Error(failure.to_string()),
            FailureKind::Invalid => Outcome::Spoilt(failure.to_string()),
        }
    }
}
