//! Verdicts on times that are too small for events alone.

use crate::{Row, Speedup};
use stats::{paired_ratio, small_verdict, verdict, RatioOptions, Verdict, SMALL_US};

impl Speedup {
    /// Decides by kernel durations as well if a time of `other` or `row` is small and both have them.
    pub(crate) fn ask_kernels(&mut self, other: &Row, row: &Row, options: &RatioOptions) {
        let is_small = |row: &Row| {
            let time = row.time.as_ref();
            time.is_some_and(|time| time.median_us < SMALL_US)
        };
        if !is_small(row) && !is_small(other) {
            return;
        }
        let (theirs, ours) = (&other.kernel_samples_us, &row.kernel_samples_us);
        if let Ok(kernels) = paired_ratio(theirs, ours, options) {
            self.of_kernels = Some(kernels.ratio);
            self.verdict = small_verdict(self.verdict, &kernels, options.margin);
        }
    }

    /// Why it is undecided although its interval is not, in words.
    pub fn doubt(&self, margin: f64) -> Option<String> {
        let by_events = verdict(self.low, self.high, margin);
        let overruled = self.verdict == Verdict::Ambiguous && by_events != self.verdict;
        let kernels = self.of_kernels.filter(|_| overruled)?;
        Some(format!(
            "undecided over {}: {by_events} by events ({:.3}), but {kernels:.3} by kernel durations",
            self.baseline, self.ratio
        ))
    }
}
