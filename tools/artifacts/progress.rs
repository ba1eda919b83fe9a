//! Progress bars with rate and time left, on a terminal only.

use std::io::IsTerminal;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

#[derive(Clone)]
pub struct Progress(MultiProgress);

impl Progress {
    pub fn on_terminal() -> Self {
        let visible = std::io::stderr().is_terminal();
        Self(if visible {
            MultiProgress::new()
        } else {
            hidden()
        })
    }

    pub fn none() -> Self {
        Self(hidden())
    }

    /// A bar that counts bytes up to `size`.
    pub fn bytes(&self, name: &str, size: u64) -> ProgressBar {
        const TEMPLATE: &str =
            "{prefix:36} {wide_bar} {bytes:>10}/{total_bytes:10} {bytes_per_sec:>12} {eta:>4}";
        self.add(ProgressBar::new(size), name, TEMPLATE)
    }

    /// A line that says what is being done.
    pub fn steps(&self, name: &str) -> ProgressBar {
        let bar = self.add(
            ProgressBar::new_spinner(),
            name,
            "{prefix:36} {elapsed} {msg}",
        );
        bar.enable_steady_tick(std::time::Duration::from_millis(250));
        bar
    }

    fn add(&self, bar: ProgressBar, name: &str, template: &str) -> ProgressBar {
        let style = ProgressStyle::with_template(template);
        let bar = bar.with_prefix(name.to_owned());
        self.0.add(match style {
            Ok(style) => bar.with_style(style),
            Err(_) => bar,
        })
    }
}

fn hidden() -> MultiProgress {
    MultiProgress::with_draw_target(ProgressDrawTarget::hidden())
}
