//! Waiting until the driver has scrubbed freed memory.
//!
//! It does so in the background, after `cuMemFree` has returned: on an H200 with driver 580 for
//! 2.4 ms per GB, during which anything that reads memory at full speed takes 15 % longer. A workload
//! right after one of many GB would be measured that much too slow.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// Bytes scrubbed per nanosecond: a lower bound, well under the measured rate.
const BYTES_PER_NS: usize = 250;

/// When freed memory has been scrubbed.
#[derive(Default)]
pub(crate) struct Scrub {
    until: Cell<Option<Instant>>,
}

impl Scrub {
    /// `bytes` were freed at `now`; they are scrubbed after those already queued.
    pub(crate) fn freed(&self, bytes: usize, now: Instant) {
        let start = self.until.get().map_or(now, |until| until.max(now));
        let length = Duration::from_nanos((bytes / BYTES_PER_NS) as u64);
        self.until.set(Some(start + length));
    }

    /// The time remaining.
    pub(crate) fn left(&self, now: Instant) -> Duration {
        let until = self.until.get();
        until.map_or(Duration::ZERO, |until| until.saturating_duration_since(now))
    }

    /// Sleeps until scrubbing is done.
    pub(crate) fn wait(&self) {
        let left = self.left(Instant::now());
        if !left.is_zero() {
            std::thread::sleep(left);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn nothing_freed_is_nothing_to_wait_for() {
        assert_eq!(Scrub::default().left(Instant::now()), Duration::ZERO);
    }

    #[test]
    fn frees_queue_up_and_pass() {
        let (scrub, now) = (Scrub::default(), Instant::now());
        scrub.freed(1_000_000_000, now);
        assert_eq!(scrub.left(now), 4 * MS);
        scrub.freed(500_000_000, now + MS);
        assert_eq!(scrub.left(now + MS), 5 * MS);
        assert_eq!(scrub.left(now + 7 * MS), Duration::ZERO);
        scrub.freed(250_000_000, now + 10 * MS);
        assert_eq!(scrub.left(now + 10 * MS), MS);
    }

    #[test]
    fn waits_until_it_is_over() {
        let scrub = Scrub::default();
        scrub.freed(1_000_000_000, Instant::now());
        scrub.wait();
        assert_eq!(scrub.left(Instant::now()), Duration::ZERO);
    }
}
