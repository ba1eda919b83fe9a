//! Progress on standard error.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use record::{time_us_text, Row, Status};

use crate::protocol::Step;

pub struct Progress {
    bar: ProgressBar,
    title: String,
    interactive: bool,
}

impl Progress {
    pub fn new(workloads: usize) -> Self {
        let interactive = std::io::stderr().is_terminal();
        let bar = if interactive {
            ProgressBar::new(workloads as u64)
        } else {
            ProgressBar::hidden()
        };
        let style = ProgressStyle::with_template("{bar:20} {pos}/{len}, {eta} left  {wide_msg}")
            .expect("the template is valid");
        bar.set_style(style);
        bar.enable_steady_tick(Duration::from_millis(250));
        Self {
            bar,
            title: String::new(),
            interactive,
        }
    }

    pub fn begin(&mut self, title: String) {
        self.bar.set_message(title.clone());
        self.title = title;
    }

    pub fn step(&self, step: &Step) {
        if self.interactive {
            let who = step.contender.as_deref().unwrap_or("harness");
            self.bar
                .set_message(format!("{}: {who} {}", self.title, step.what));
        }
    }

    /// One line per row, as soon as it is known.
    pub fn rows(&self, rows: &[Row]) {
        for row in rows {
            let name = &row.contender.name;
            let result = match (&row.time, row.status) {
                (Some(time), Status::Ok) => format!("{} us", time_us_text(time.median_us)),
                _ => {
                    format!(
                        "{}: {}",
                        row.status,
                        row.reason.as_deref().unwrap_or("no reason given")
                    )
                }
            };
            self.say(&format!("{}  {name}  {result}", self.title));
        }
        self.bar.inc(1);
    }

    pub fn say(&self, line: &str) {
        if self.interactive {
            self.bar.println(line);
        } else {
            workspace::tell!("{line}");
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
