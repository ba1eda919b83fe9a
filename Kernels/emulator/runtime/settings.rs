//! How kernels run; a test sets it, nothing in the environment does.

use std::sync::{Mutex, PoisonError};

use machine::{Schedule, TensorLoads, Watch};

/// A change of kernels' PTX, which a gate must find out.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// A text and what takes its place everywhere.
    Everywhere(&'static str, &'static str),
    /// A line of the translation unit of one kernel, counted from 1.
    Line {
        kernel: String,
        line: u32,
        text: String,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    pub schedule: Schedule,
    pub tensor_loads: TensorLoads,
    pub workers: usize,
    pub multiprocessors: u32,
    pub races: Watch,
    /// Thread instructions of a cluster before it is given up.
    pub limit: u64,
    pub fault: Option<Fault>,
}

impl Settings {
    /// Without faults and races, on one core.
    pub const fn under(schedule: Schedule) -> Self {
        Self {
            schedule,
            tensor_loads: TensorLoads::AfterWait,
            workers: 1,
            multiprocessors: 4,
            races: Watch::Off,
            limit: 1 << 36,
            fault: None,
        }
    }
}

/// Those of the largest card that has a compute capability: H200, B200.
pub const fn multiprocessors_of(capability: u32) -> u32 {
    if capability < 100 {
        132
    } else {
        148
    }
}

static SETTINGS: Mutex<Settings> = Mutex::new(Settings::under(Schedule::AtOnce));

pub fn set(settings: Settings) {
    *SETTINGS.lock().unwrap_or_else(PoisonError::into_inner) = settings;
}

pub(crate) fn get() -> Settings {
    SETTINGS
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clone()
}
