//! The verdict where timers themselves are in doubt.
//!
//! What events add to a kernel differs between kernels by up to about 1 us: the launch of a cluster,
//! a large shared memory, a second kernel. Below [`SMALL_US`] that is more than many differences.

use crate::{PairedRatio, Verdict};

/// Times below this, in us, are measured by kernel durations as well.
pub const SMALL_US: f64 = 20.0;

/// What both timers say: `event` is the verdict from events, `kernel` the ratio of kernel durations.
/// Faster and slower need the same from both; `Same` stands unless kernel durations clearly differ.
pub fn small_verdict(event: Verdict, kernel: &PairedRatio, margin: f64) -> Verdict {
    let agree = match event {
        Verdict::Faster => kernel.ratio > 1.0 + margin,
        Verdict::Slower => kernel.ratio < 1.0 / (1.0 + margin),
        Verdict::Same => matches!(kernel.verdict, Verdict::Same | Verdict::Ambiguous),
        Verdict::Ambiguous => false,
    };
    match agree {
        true => event,
        false => Verdict::Ambiguous,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict;

    const MARGIN: f64 = 0.005;

    fn kernel(low: f64, high: f64) -> PairedRatio {
        PairedRatio {
            ratio: (low * high).sqrt(),
            low,
            high,
            pairs: 25,
            verdict: verdict(low, high, MARGIN),
        }
    }

    #[test]
    fn a_difference_needs_both_timers() {
        use Verdict::{Ambiguous, Faster, Slower};
        for (event, low, high, decided) in [
            (Faster, 1.05, 1.07, Faster),
            (Faster, 0.99, 1.07, Faster),
            (Faster, 0.99, 1.01, Ambiguous),
            (Faster, 0.90, 0.92, Ambiguous),
            (Slower, 0.90, 0.92, Slower),
            (Slower, 0.995, 1.0, Ambiguous),
            (Slower, 1.05, 1.07, Ambiguous),
            (Ambiguous, 1.05, 1.07, Ambiguous),
        ] {
            let kernel = kernel(low, high);
            assert_eq!(
                small_verdict(event, &kernel, MARGIN),
                decided,
                "{event} {kernel:?}"
            );
        }
    }

    #[test]
    fn the_same_stays_the_same_unless_kernels_clearly_differ() {
        use Verdict::{Ambiguous, Same};
        assert_eq!(small_verdict(Same, &kernel(0.999, 1.001), MARGIN), Same);
        assert_eq!(small_verdict(Same, &kernel(0.98, 1.02), MARGIN), Same);
        assert_eq!(small_verdict(Same, &kernel(1.05, 1.07), MARGIN), Ambiguous);
    }
}
