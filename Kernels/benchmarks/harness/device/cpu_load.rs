//! How much slower a CPU is while others use it too.

use std::cell::Cell;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Words that every core adds up in one step: of its own cache, in a few microseconds.
const STEP_WORDS: usize = 1 << 13;
/// Shorter work would mostly measure how long it takes to wake a thread.
const STEPS_MIN: usize = 50;

/// Work that all cores do together, as a kernel on them would, and that takes equally long whenever nobody else uses
/// them, their caches or the machine below.
pub(crate) struct Load {
    words: Vec<u64>,
    /// Time of a step when it was shortest.
    quiet: Cell<Duration>,
}

impl Load {
    /// Looks at the machine for a millisecond or two.
    pub(crate) fn new() -> Self {
        const LOOKS: usize = 5;
        let load = Self {
            words: vec![1; STEP_WORDS],
            quiet: Cell::new(Duration::MAX),
        };
        (0..LOOKS).for_each(|_| load.look());
        load
    }

    /// Learns how fast the machine is if nobody disturbs it right now.
    pub(crate) fn look(&self) {
        self.step(STEPS_MIN);
    }

    /// How many times as long work takes right now as it did at best; the work is about as long as `length`.
    pub(crate) fn slowed_by(&self, length: Duration) -> f64 {
        let steps = length.as_nanos() / self.quiet.get().as_nanos().max(1);
        let step = self.step(STEPS_MIN.max(steps as usize));
        step.as_secs_f64() / self.quiet.get().as_secs_f64()
    }

    /// Time of one of so many steps, until the last core has ended.
    fn step(&self, steps: usize) -> Duration {
        let words = &self.words[..];
        let start = Instant::now();
        rayon::broadcast(|_| {
            for _ in 0..steps {
                black_box(black_box(words).iter().sum::<u64>());
            }
        });
        let step = (start.elapsed() / steps as u32).max(Duration::from_nanos(1));
        self.quiet.set(self.quiet.get().min(step));
        step
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn others_make_work_longer_and_leave_it_as_it_was() {
        let load = Load::new();
        let least = |wanted: &dyn Fn(f64) -> bool| {
            // Whoever else uses the machine that runs this test has pauses.
            (0..1000).any(|_| wanted(load.slowed_by(Duration::from_millis(2))))
        };
        assert!(least(&|slowed| slowed < 1.2));
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..2 * std::thread::available_parallelism().map_or(1, usize::from) {
                scope.spawn(|| {
                    while !stop.load(Ordering::Relaxed) {
                        std::hint::spin_loop();
                    }
                });
            }
            let slowed = least(&|slowed| slowed > 1.5);
            stop.store(true, Ordering::Relaxed);
            assert!(slowed);
        });
        assert!(least(&|slowed| slowed < 1.2));
    }
}
