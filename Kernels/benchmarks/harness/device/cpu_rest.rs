//! Waiting until nobody works: a sample must not share the machine with what another contender has left running.

use std::fs;
use std::time::{Duration, Instant};

/// Long beside the time that it takes to look.
const WINDOW: Duration = Duration::from_micros(50);
/// Of a core: what wakes up for a moment may.
const SHARE: f64 = 0.25;

/// Waits until no other thread of this process works, `patience` at most, and says whether that is so. A thread that
/// has no core meanwhile goes unseen, and costs nobody anything.
pub(crate) fn wait_for_rest(patience: Duration) -> bool {
    let start = Instant::now();
    while others_share().is_some_and(|share| share > SHARE) {
        if start.elapsed() > patience {
            return false;
        }
    }
    true
}

fn others_share() -> Option<f64> {
    let (start, before) = (Instant::now(), others_time()?);
    while start.elapsed() < WINDOW {
        std::hint::spin_loop();
    }
    let used = others_time()?.saturating_sub(before);
    Some(used.as_secs_f64() / start.elapsed().as_secs_f64())
}

/// CPU time of all other threads of this process. Each is asked, because the clock of a whole process knows of threads
/// on other cores only what the last tick of the scheduler saw.
fn others_time() -> Option<Duration> {
    // SAFETY: no conditions.
    let own = unsafe { libc::gettid() };
    let threads = fs::read_dir("/proc/self/task").ok()?.flatten();
    let threads = threads.filter_map(|thread| thread.file_name().to_str()?.parse().ok());
    let others = threads.filter(|thread| *thread != own);
    Some(others.filter_map(time_of).sum())
}

/// None if it has ended.
fn time_of(thread: libc::pid_t) -> Option<Duration> {
    /// The kernel's formula: CPU time of one thread, by the scheduler's clock.
    const OF_A_THREAD: libc::clockid_t = 6;
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: writes one timespec.
    let status = unsafe { libc::clock_gettime(!thread << 3 | OF_A_THREAD, &mut time) };
    (status == 0).then(|| Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// Other tests may run meanwhile, so that what is counted is at least the thread's own time.
    #[test]
    fn what_another_thread_does_is_seen_while_it_does_it() {
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let before = others_time().unwrap();
            scope.spawn(|| {
                while !done.load(Ordering::Acquire) {
                    std::hint::spin_loop();
                }
            });
            let start = Instant::now();
            let worked = Duration::from_millis(2);
            while others_time().unwrap() < before + worked {
                assert!(start.elapsed() < Duration::from_secs(20));
            }
            // Nor does it rest before it has ended, if it has a core.
            let restless = (0..1000).any(|_| !wait_for_rest(2 * WINDOW));
            done.store(true, Ordering::Release);
            assert!(restless);
        });
    }
}
