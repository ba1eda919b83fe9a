//! Device errors, in words that name the value and the remedy.

use contender::ContenderError;

/// A device operation that failed.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// The program was built without CUDA.
    #[error(
        "device cuda: this program was built without CUDA (arch none); build on a machine with a \
         GPU, or with --config=sm90a or --config=sm100a, or use --device cpu"
    )]
    NotBuilt,
    /// The program's kernels are PTX.
    #[error(
        "device cuda: this program's kernels are PTX for the interpreter; use --device ptx, or build \
         without --config=emulated"
    )]
    Emulated,
    /// The program's kernels are machine code, or there are none.
    #[error(
        "device ptx: this program has no PTX to interpret; build with --config=emulated (sm_90a) or \
         --config=emulated100a (sm_100a)"
    )]
    NotEmulated,
    /// Time on the interpreter says nothing about time on a GPU.
    #[error("device ptx: it interprets kernels and has no clock; use --device cuda to measure")]
    NoClock,
    /// Time of rewritten kernels says nothing about the GPU that they were written for.
    #[error(
        "device cuda: this program's kernels are for sm_100a, rewritten for this card, and are not timed; \
         measure on a B200 with --config=sm100a"
    )]
    NoClockRewritten,
    /// No driver, or no GPU behind it.
    #[error("device cuda: {reason}; {remedy}, or use --device cpu")]
    Unavailable {
        /// What was tried and how it failed.
        reason: String,
        /// What to do about it.
        remedy: String,
    },
    /// There is a GPU, but this program has no code that runs on it.
    #[error(
        "device cuda: this program's kernels do not run on this GPU ({arch}): {status}; build on \
        this machine, or with the config for its architecture"
    )]
    Incompatible {
        /// The GPU's architecture.
        arch: String,
        /// The error of the first launch.
        status: String,
    },
    /// Not enough free memory on the device.
    #[error("device {device}: cannot allocate {bytes} bytes ({free}); use a smaller workload")]
    OutOfMemory {
        /// `cpu` or `cuda`.
        device: &'static str,
        /// Requested size.
        bytes: usize,
        /// What is free, in words.
        free: String,
    },
    /// The caller passed an invalid argument.
    #[error("device: {0}")]
    Invalid(String),
    /// The driver reported an error. After a fault the context is dead: the process must restart.
    #[error("device cuda: {call} failed: {status}{}", if *sticky {
        "; the context is lost and this process cannot use the GPU again"
    } else { "" })]
    Driver {
        /// The call that reported it, which for asynchronous work need not be the one that caused it.
        call: &'static str,
        /// The driver's name and description of it.
        status: String,
        /// Whether every later call on this context fails too (illegal address and the like).
        sticky: bool,
    },
}

/// A sample that could not be taken.
#[derive(Debug, thiserror::Error)]
pub enum SampleError {
    /// The work under measurement returned an error.
    #[error(transparent)]
    Contender(#[from] ContenderError),
    /// The device failed, which includes faults of the work under measurement.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The device does not support this.
    #[error("{0}")]
    Unsupported(String),
}
