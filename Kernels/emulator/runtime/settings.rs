//! How kernels run; a test sets it, nothing in the environment does.

use std::sync::{Mutex, PoisonError};

use machine::{Schedule, Watch};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    pub schedule: Schedule,
    pub workers: usize,
    pub multiprocessors: u32,
    pub races: Watch,
    /// Text of kernels' PTX and what takes its place everywhere: a gate must find such a fault out.
    pub fault: Option<(&'static str, &'static str)>,
}

static SETTINGS: Mutex<Settings> = Mutex::new(Settings {
    schedule: Schedule::AtOnce,
    workers: 1,
    multiprocessors: 4,
    races: Watch::Off,
    fault: None,
});

pub fn set(settings: Settings) {
    *SETTINGS.lock().unwrap_or_else(PoisonError::into_inner) = settings;
}

pub(crate) fn get() -> Settings {
    *SETTINGS.lock().unwrap_or_else(PoisonError::into_inner)
}
