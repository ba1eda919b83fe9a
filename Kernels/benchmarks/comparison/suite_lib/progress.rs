//! Progress of the whole suite, and the time remaining.

use std::time::{Duration, Instant};

pub struct Progress {
    start: Instant,
    total: usize,
    done: usize,
    title: String,
}

impl Progress {
    pub fn new(total: usize) -> Progress {
        Progress {
            start: Instant::now(),
            total,
            done: 0,
            title: String::new(),
        }
    }

    /// Processes a line of bench output. Row lines begin with the workload and two blanks; the first
    /// line of a workload counts it.
    pub fn line(&mut self, line: &str) -> String {
        if let [title, _, _] = line.splitn(3, "  ").collect::<Vec<_>>()[..] {
            if title != self.title {
                self.title = title.to_owned();
                self.done = (self.done + 1).min(self.total);
            }
        }
        format!("[{}] {line}", self.text(self.start.elapsed()))
    }

    /// Workloads already measured.
    pub fn skip(&mut self, workloads: usize) {
        self.total = self.total.saturating_sub(workloads);
    }

    fn text(&self, elapsed: Duration) -> String {
        let place = format!("{}/{}", self.done, self.total);
        if self.done == 0 {
            return place;
        }
        let left = elapsed.as_secs_f64() * (self.total - self.done) as f64 / self.done as f64;
        format!("{place}, {} left", clock(left))
    }
}

/// `0:07`, `12:30`, `1:02:03`.
pub fn clock(seconds: f64) -> String {
    let seconds = seconds.round() as u64;
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match hours {
        0 => format!("{minutes}:{seconds:02}"),
        _ => format!("{hours}:{minutes:02}:{seconds:02}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workloads_are_counted_once_and_time_is_foretold() {
        let mut progress = Progress::new(4);
        progress.line("warning: something");
        progress.line("rmsnorm bf16 smoke/a  ours  3.1 us");
        progress.line("rmsnorm bf16 smoke/a  quack  3.2 us");
        progress.line("rmsnorm bf16 smoke/b  ours  3.1 us");
        assert_eq!(progress.text(Duration::from_secs(60)), "2/4, 1:00 left");
        assert_eq!(clock(3723.4), "1:02:03");
    }
}
