//! Whether the timed region holds all of the work, and the time of it.

use crate::trace::Traced;
use crate::Timing;

/// Differences up to this are due to the timers: tracing adds to the edges of every activity, and a
/// launch with clusters or a lot of shared memory costs up to 1.1 us more between events than the
/// plain kernel used to measure their overhead.
const SLACK_US_PER_ACTIVITY: f64 = 1.5;
/// Between two clocks for the same samples.
const SLACK_SHARE: f64 = 0.02;
/// Between samples of the race and traced ones, at equal time or at equal cycles: honest rows on an
/// H200 stay within 10 %.
const TIE_SHARE: f64 = 0.15;
const TIE_US_PER_ACTIVITY: f64 = 2.5;
/// The same for a race that is slower: whoever hides work in it is faster there. Some honest kernels have two speeds,
/// a third apart.
const TIE_SHARE_SLOWER: f64 = 0.5;
/// Host time to queue one execution: for the call, and for each kernel, copy or fill.
const HOST_US: f64 = 250.0;
const HOST_US_PER_ACTIVITY: f64 = 25.0;

/// What the tracer saw outside of the timed region, or by another clock.
pub(crate) fn outside_region(timing: &Timing) -> Option<String> {
    let traced = timing.traced.as_ref()?;
    let outside = traced.outside.as_ref();
    let outside = outside.map(|what| format!("work outside the timed region: {what}"));
    outside
        .or_else(|| on_the_host(timing, traced))
        .or_else(|| timers_disagree(traced))
}

/// Work on the host would be hidden: the stream is held meanwhile.
fn on_the_host(timing: &Timing, traced: &Traced) -> Option<String> {
    let host_us = timing.median_enqueue_us()?;
    let limit_us = HOST_US + HOST_US_PER_ACTIVITY * traced.activities as f64;
    (host_us > limit_us).then(|| {
        format!(
            "host work outside the timed region: each call takes {host_us:.0} us to queue {} \
             activities, where {limit_us:.0} us would do",
            traced.activities
        )
    })
}

/// Events and activity records of the same samples.
fn timers_disagree(traced: &Traced) -> Option<String> {
    let (event_us, activity_us) = (traced.median_event_us(), traced.median_activity_us());
    let edges_us = SLACK_US_PER_ACTIVITY * traced.activities as f64;
    let slack = edges_us.max(SLACK_SHARE * activity_us);
    ((event_us - activity_us).abs() > slack).then(|| {
        format!(
            "timers disagree: events say {event_us:.2} us, the activity tracer {activity_us:.2} us"
        )
    })
}

/// Whether the race saw other work than the tracer. Its clock may have been another one, which
/// matters to some kernels and not to others: both times, and all between them, are plausible.
pub(crate) fn races_differently(timing: &Timing) -> Option<String> {
    let traced = timing.traced.as_ref()?;
    let (raced_us, traced_us) = (timing.median_us(), traced.median_activity_us());
    let clocks = timing.median_clock_mhz().zip(traced.median_clock_mhz());
    let scaled_us = clocks.map_or(traced_us, |(raced, traced)| traced_us * traced / raced);
    let (low, high) = (traced_us.min(scaled_us), traced_us.max(scaled_us));
    let edges_us = TIE_US_PER_ACTIVITY * traced.activities as f64;
    let slack = |us: f64, share: f64| edges_us.max(share * us);
    let (least, most) = (
        low - slack(low, TIE_SHARE),
        high + slack(high, TIE_SHARE_SLOWER),
    );
    (raced_us < least || raced_us > most).then(|| {
        format!(
            "does other work when traced: {raced_us:.2} us in the race, {traced_us:.2} us by the \
             activity tracer"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{TimedSample, TracedSample};
    use stats::StopReason;

    /// The same time by every clock, raced and traced at 1500 MHz.
    fn timing(us: f64, activities: usize) -> Timing {
        let raced = TimedSample {
            elapsed_us: us,
            clock_mhz: Some(1500.0),
            dropped: false,
            fresh: false,
            unqueued: false,
            enqueue_us: Some(10.0),
        };
        let traced = TracedSample {
            event_us: us,
            activity_us: us,
            clock_mhz: Some(1500.0),
        };
        Timing {
            samples: vec![raced; 20],
            reference_clock_mhz: None,
            checked_rounds: 0,
            stop: StopReason::Precise,
            traced: Some(Traced {
                samples: vec![traced; 5],
                activities,
                outside: None,
                small: false,
            }),
        }
    }

    fn traced(timing: &mut Timing) -> &mut Traced {
        timing.traced.as_mut().unwrap()
    }

    #[test]
    fn honest_work_passes_and_so_does_what_nobody_traced() {
        assert_eq!(outside_region(&timing(5.0, 1)), None);
        let mut untraced = timing(5.0, 1);
        untraced.traced = None;
        untraced.samples[0].enqueue_us = Some(1e9);
        assert_eq!(outside_region(&untraced), None);
    }

    #[test]
    fn timers_agree_within_their_edges_or_two_percent() {
        let agrees = |event_us, activity_us, activities| {
            let mut timing = timing(activity_us, activities);
            for sample in &mut traced(&mut timing).samples {
                sample.event_us = event_us;
            }
            let reason = outside_region(&timing);
            assert!(reason.iter().all(|reason| reason.contains("timers")));
            reason.is_none()
        };
        assert!(agrees(7.9, 5.0, 2));
        assert!(agrees(6.4, 5.0, 1));
        assert!(!agrees(6.6, 5.0, 1));
        assert!(!agrees(3.4, 5.0, 1));
        assert!(agrees(1019.0, 1000.0, 1));
        assert!(!agrees(1021.0, 1000.0, 1));
    }

    #[test]
    fn the_race_is_tied_to_the_trace_at_equal_time_or_equal_cycles() {
        let tied = |raced_us, raced_mhz| {
            let mut timing = timing(1000.0, 1);
            for sample in &mut timing.samples {
                (sample.elapsed_us, sample.clock_mhz) = (raced_us, Some(raced_mhz));
            }
            let reason = races_differently(&timing);
            assert!(reason.iter().all(|reason| reason.contains("when traced")));
            assert_eq!(outside_region(&timing), None);
            reason.is_none()
        };
        assert!(tied(1499.0, 1500.0) && tied(851.0, 1500.0));
        assert!(!tied(1501.0, 1500.0) && !tied(849.0, 1500.0));
        // A fifth less clock: compute takes a quarter longer, copies the same time.
        assert!(tied(1870.0, 1200.0) && tied(860.0, 1200.0));
        assert!(!tied(1880.0, 1200.0) && !tied(840.0, 1200.0));
    }

    #[test]
    fn two_speeds_are_no_other_work_unless_the_trace_has_the_slow_one() {
        let mut timing = timing(21.0, 1);
        let sample = timing.samples[0];
        let speeds = |us: &[f64]| {
            let of = |elapsed_us: &f64| TimedSample {
                elapsed_us: *elapsed_us,
                ..sample
            };
            us.iter().map(of).collect::<Vec<_>>()
        };
        timing.samples = speeds(&[21.0, 28.0, 22.0, 28.0, 29.0, 28.0]);
        assert_eq!(races_differently(&timing), None);
        timing.samples = speeds(&[28.0, 28.0, 28.0, 28.0, 29.0, 28.0]);
        assert_eq!(races_differently(&timing), None);
        timing.samples = speeds(&[21.0, 15.0, 21.0, 15.0, 15.0, 15.0]);
        assert!(races_differently(&timing).is_some());
    }

    #[test]
    fn work_elsewhere_and_on_the_host_is_named() {
        let mut stray = timing(5.0, 1);
        traced(&mut stray).outside = Some("'side' ran on another stream for 3.00 us".into());
        let reason = outside_region(&stray).unwrap();
        assert!(reason.contains("another stream"), "{reason}");
        let host = |enqueue_us, activities| {
            let mut timing = timing(5.0, activities);
            for sample in &mut timing.samples {
                sample.enqueue_us = Some(enqueue_us);
            }
            outside_region(&timing)
        };
        assert_eq!(host(270.0, 1), None);
        assert_eq!(host(1800.0, 64), None);
        assert!(host(280.0, 1).unwrap().contains("host work"));
    }
}
