//! Why a contender did not pass.

use contender::ContenderError;
use device::{DeviceError, SampleError};

use crate::{Element, Errors};

/// How a failure counts in the results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// It ran, but did something wrong.
    Wrong,
    /// It did not run.
    Error,
    /// It ran, but cannot be measured.
    Invalid,
}

#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error("wrote out of bounds: the canary {bytes} bytes {side} '{tensor}' was overwritten")]
    OutOfBounds {
        tensor: &'static str,
        bytes: usize,
        side: &'static str,
    },
    #[error("changed the input '{tensor}'")]
    InputChanged { tensor: &'static str },
    #[error(
        "left {count} elements of '{}' unwritten, the first at {}{}",
        first.tensor, first.location(), first.expectation()
    )]
    Unwritten { first: Box<Element>, count: u64 },
    #[error("wrote {count} non-finite elements to '{}', the first: {first}", first.tensor)]
    NonFinite { first: Box<Element>, count: u64 },
    #[error("{what}")]
    Inaccurate { what: String, errors: Vec<Errors> },
    #[error(
        "{count} elements of '{}' differ from the full reference, the first: {first}; \
         largest error {error:.3e}, allowed {allowed:.3e}",
        first.tensor
    )]
    WrongAgainstReference {
        first: Box<Element>,
        count: u64,
        error: f64,
        allowed: f64,
    },
    #[error(
        "'{}' differs from the full reference in the tile at {index}: relative L2 error \
         {error:.3e}, allowed {allowed:.3e}; worst: {worst}",
        worst.tensor
    )]
    TileAgainstReference {
        index: usize,
        worst: Box<Element>,
        error: f64,
        allowed: f64,
    },
    #[error("returned the answer to earlier inputs: its output is cached")]
    Stale,
    #[error("the tracer saw no kernel, copy or fill in the timed region")]
    Untraced,
    #[error(
        "works outside of its calls: threads use {:.0} % of a core while nobody calls it; let them \
         wait passively",
        100.0 * share
    )]
    WorksUncalled { share: f64 },
    #[error("wrote its output out of stream order: work runs on another stream or thread")]
    OutOfOrder,
    #[error("no sampled unit covers '{tensor}': the problem's units leave it out")]
    Unsampled { tensor: &'static str },
    #[error(
        "the oracle's or the honest answer for unit {unit} is not finite, so it cannot be checked"
    )]
    Oracle { unit: usize },
    #[error("the oracle: {0}")]
    Asked(String),
    #[error("{failure} (inputs: {family})")]
    OnFamily {
        family: &'static str,
        failure: Box<Failure>,
    },
    #[error(transparent)]
    Contender(#[from] ContenderError),
    #[error(transparent)]
    Device(#[from] DeviceError),
    #[error("{0}")]
    Unsupported(String),
}

impl From<SampleError> for Failure {
    fn from(error: SampleError) -> Self {
        match error {
            SampleError::Contender(error) => Failure::Contender(error),
            SampleError::Device(error) => Failure::Device(error),
            SampleError::Unsupported(reason) => Failure::Unsupported(reason),
        }
    }
}

impl Failure {
    /// The same, on inputs of another kind than those that are timed.
    pub(crate) fn on(self, family: &'static str) -> Self {
        Failure::OnFamily {
            family,
            failure: Box::new(self),
        }
    }

    pub fn kind(&self) -> FailureKind {
        match self {
            Failure::Contender(_)
            | Failure::Device(_)
            | Failure::Unsupported(_)
            | Failure::Untraced
            | Failure::Oracle { .. }
            | Failure::Asked(_)
            | Failure::Unsampled { .. } => FailureKind::Error,
            Failure::WorksUncalled { .. } => FailureKind::Invalid,
            Failure::OnFamily { failure, .. } => failure.kind(),
            _ => FailureKind::Wrong,
        }
    }

    /// Whether memory was written that is not the contender's to write, by it or by somebody before it.
    pub fn is_damage(&self) -> bool {
        matches!(
            self,
            Failure::OutOfBounds { .. } | Failure::InputChanged { .. }
        )
    }

    /// The errors of the outputs, if they were measured.
    pub fn errors(&self) -> &[Errors] {
        match self {
            Failure::Inaccurate { errors, .. } => errors,
            Failure::OnFamily { failure, .. } => failure.errors(),
            _ => &[],
        }
    }

    /// Whether the process can no longer use the device and has to be replaced; with threads that do
    /// not rest it would measure them too.
    pub fn device_is_lost(&self) -> bool {
        match self {
            Failure::OnFamily { failure, .. } => failure.device_is_lost(),
            Failure::Device(DeviceError::Driver { sticky, .. }) => *sticky,
            Failure::WorksUncalled { .. } => true,
            _ => false,
        }
    }
}
