//! Ctrl-C: a flag that every loop checks, and a signal thread that ends a run that does not react.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::error::{Error, Result};

pub const INTERRUPTED_EXIT_CODE: u8 = 130;
const GRACE: Duration = Duration::from_secs(2);

#[derive(Clone, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Watches SIGINT, SIGTERM and SIGHUP. Loops get a moment to stop cleanly; then the process
    /// exits, which is safe because every file is created by rename.
    pub fn on_signals() -> std::io::Result<Self> {
        let cancel = Self::default();
        let seen = cancel.clone();
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
        thread::spawn(move || {
            if signals.forever().next().is_some() {
                seen.request();
                thread::sleep(GRACE);
                std::process::exit(INTERRUPTED_EXIT_CODE.into());
            }
        });
        Ok(cancel)
    }

    pub fn request(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub fn check(&self) -> Result<()> {
        if self.0.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        Ok(())
    }

    /// Sleeps in short steps, so that an interrupt is seen.
    pub fn sleep(&self, duration: Duration) -> Result<()> {
        const STEP: Duration = Duration::from_millis(50);
        let mut left = duration;
        while !left.is_zero() {
            self.check()?;
            let step = left.min(STEP);
            thread::sleep(step);
            left -= step;
        }
        self.check()
    }
}
