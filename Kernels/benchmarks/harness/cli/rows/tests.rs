//! From outcomes to rows.

use super::*;
use contender::DeviceKind;
use faults::Scaled;
use stats::{StopReason, Verdict};
use timing::{Bandwidth, TimedSample, Traced, TracedSample, Validity};

fn identities() -> [Identity; 3] {
    let named = |name, kind| Identity::in_tree(name, kind, "everything");
    [
        named("ours", Kind::Own),
        named("first", Kind::Baseline),
        named("second", Kind::Baseline),
    ]
}

/// Twenty rounds around a time; the third sample of every lane ran at a low clock.
fn measured(time_us: f64, reason: Option<&str>) -> Outcome {
    let sample = |round: usize| TimedSample {
        elapsed_us: time_us * (1.0 + 0.001 * (round % 3) as f64),
        clock_mhz: Some(1800.0),
        fresh: false,
        dropped: round == 2,
        unqueued: false,
        enqueue_us: Some(4.0),
    };
    Outcome::Measured(Box::new(Measured {
        facts: BTreeMap::from([("tile".to_owned(), "128x64".into())]),
        errors: Vec::new(),
        verified: true,
        also_right_on: vec!["outliers".to_owned()],
        reference: Some("full".to_owned()),
        timing: Timing {
            samples: (0..20).map(sample).collect(),
            reference_clock_mhz: Some(1900.0),
            checked_rounds: 1,
            stop: StopReason::Precise,
            traced: None,
        },
        validity: Validity {
            reason: reason.map(str::to_owned),
        },
        energy_j: None,
        state: device::DeviceState::default(),
    }))
}

fn rows_of(outcomes: [Outcome; 3], baseline: Option<&str>) -> Vec<Row> {
    let names = ["ours", "first", "second"].map(str::to_owned);
    let outcomes = names.into_iter().zip(outcomes).collect();
    let bandwidth = Bandwidth {
        name: "hbm_read".into(),
        tbps: 4.0,
        written_share: 0.0,
    };
    let roofs = Roofs {
        bandwidths: vec![bandwidth],
        ..Roofs::default()
    };
    let context = RowContext {
        arch: "sm_90a",
        roofs: &roofs,
        baseline,
        ratio: RatioOptions::default(),
        given: false,
    };
    let problem = Scaled::new(1000, 1000);
    let mut rows = rows(&problem, &identities().each_ref(), &outcomes, &context);
    compare(&mut rows, &context, |names| names.join("+"));
    let file = |rows| record::ResultFile {
        meta: report_meta(),
        rows,
    };
    record::check(&file(rows.clone())).expect("rows are consistent");
    rows
}

/// The smallest meta that a result file may have.
fn report_meta() -> record::Meta {
    let text = serde_json::json!({
        "schema": 1, "program": "test", "argv": [], "build": {"arch": "none"}, "host": "", "os": "",
        "device": {"kind": DeviceKind::Cpu, "name": "", "arch": ""}, "started_at": "",
        "complete": false, "seed": 0, "protocol": {
            "cache": "cold", "launch": "direct", "timer": "op", "verify": true, "warmup_ms": 0.0,
            "rounds_min": 1, "rounds_max": 1, "duration_min_ms": 0.0, "budget_ms": 0.0,
            "half_width": 0.0, "half_width_near": 0.0, "margin": 0.0, "bootstrap_resamples": 1,
            "clock_fraction": 0.0, "timer_overhead_us": 0.0, "cross_check": false
        }
    });
    serde_json::from_value(text).expect("the meta is valid")
}

#[test]
fn the_first_baseline_with_a_time_is_the_one_to_compare_with() {
    let rows = rows_of(
        [
            measured(10.0, None),
            measured(20.0, None),
            measured(5.0, None),
        ],
        None,
    );
    let speedup = rows[0].speedup.as_ref().unwrap();
    assert_eq!(
        (speedup.baseline.as_str(), speedup.verdict),
        ("first", Verdict::Faster)
    );
    assert!((speedup.ratio - 2.0).abs() < 1e-9);
    assert_eq!(speedup.pairs, 19);
    assert!(rows[1].speedup.is_none());
    assert_eq!(rows[2].speedup.as_ref().unwrap().verdict, Verdict::Faster);
    assert_eq!(
        (rows[0].repro.as_str(), rows[1].repro.as_str()),
        ("ours+first+second", "first")
    );
    let best = &rows[0].against_best.as_ref().unwrap().speedup;
    assert_eq!(
        (best.baseline.as_str(), best.verdict),
        ("second", Verdict::Slower)
    );
    let against = rows[0].against.iter().map(|each| each.baseline.as_str());
    assert!(against.eq(["first", "second"]));
    assert!(rows[1].against.is_empty() && rows[1].against_best.is_none());

    let wrong = Outcome::Timeout("hung".into());
    let rows = rows_of([measured(10.0, None), wrong, measured(5.0, None)], None);
    assert_eq!(rows[0].speedup.as_ref().unwrap().baseline, "second");
}

#[test]
fn the_best_of_a_workload_can_be_the_baseline() {
    let times = |ours| {
        [
            measured(ours, None),
            measured(20.0, None),
            measured(5.0, None),
        ]
    };
    let rows = rows_of(times(10.0), Some(BEST));
    let speedup = |row: &Row| row.speedup.clone().map(|it| (it.baseline, it.verdict));
    assert_eq!(speedup(&rows[0]), Some(("second".into(), Verdict::Slower)));
    assert_eq!(speedup(&rows[1]), Some(("second".into(), Verdict::Slower)));
    assert_eq!(speedup(&rows[2]), None);
    let best = rows[0].against_best.as_ref().unwrap();
    assert_eq!(rows[0].speedup.as_ref(), Some(&best.speedup));
    assert_eq!(rows[0].repro, "ours+second");
    let lost = || Outcome::Error("crashed".into());
    let rows = rows_of([measured(10.0, None), lost(), lost()], Some(BEST));
    assert!(rows.iter().all(|row| row.speedup.is_none()));
}

#[test]
fn a_failed_row_is_reproduced_alone() {
    let wrong = Outcome::Wrong {
        reason: "off".into(),
        errors: Vec::new(),
    };
    let rows = rows_of([wrong, measured(20.0, None), measured(5.0, None)], None);
    assert_eq!((&*rows[0].repro, &*rows[2].repro), ("ours", "second+first"));
}

#[test]
fn a_named_baseline_without_a_time_is_not_replaced() {
    let lost = Outcome::Error("crashed".into());
    let rows = rows_of(
        [measured(10.0, None), measured(20.0, None), lost],
        Some("second"),
    );
    assert!(rows.iter().all(|row| row.speedup.is_none()));
}

#[test]
fn a_row_has_times_metrics_and_what_was_dropped() {
    let rows = rows_of(
        [
            measured(10.0, None),
            measured(20.0, None),
            measured(5.0, None),
        ],
        None,
    );
    let row = &rows[0];
    assert!(row.verified && row.checked_rounds == Some(1));
    assert_eq!(row.time.as_ref().unwrap().count, 19);
    assert_eq!((row.samples_us.len(), row.samples_us[2]), (20, None));
    assert_eq!(row.dropped[0].round, 2);
    // 8.004 MB in just over 10 us.
    let tbps = row.metrics.tbps.unwrap();
    assert!((tbps - 0.8).abs() < 0.001, "{tbps}");
    assert_eq!(row.metrics.roof.as_deref(), Some("hbm_read"));
    assert_eq!(row.facts["tile"], "128x64");
    let median_us = row.time.as_ref().unwrap().median_us;
    assert_eq!(row.metrics.queries_per_second, Some(1e6 / median_us));
    assert!((row.metrics.roof_share.unwrap() - tbps / 4.0).abs() < 1e-12);
}

/// Times by events, and those of the kernels alone.
fn traced(time_us: f64, kernel_us: f64, clock_mhz: f64) -> Outcome {
    let Outcome::Measured(mut measured) = measured(time_us, None) else {
        unreachable!("it was measured");
    };
    for sample in &mut measured.timing.samples {
        sample.clock_mhz = Some(clock_mhz);
    }
    let sample = |round: usize| TracedSample {
        event_us: time_us,
        activity_us: kernel_us * (1.0 + 0.001 * (round % 3) as f64),
        clock_mhz: Some(clock_mhz),
    };
    measured.timing.traced = Some(Traced {
        samples: (0..25).map(sample).collect(),
        activities: 1,
        outside: None,
        small: true,
    });
    Outcome::Measured(measured)
}

#[test]
fn small_times_are_decided_by_kernel_durations_as_well() {
    let outcomes = [
        traced(9.0, 8.0, 1800.0),
        traced(10.0, 8.0, 1600.0),
        traced(8.0, 7.0, 1600.0),
    ];
    let rows = rows_of(outcomes, None);
    let ours = rows[0].speedup.as_ref().unwrap();
    assert_eq!(ours.verdict, Verdict::Ambiguous);
    assert!((ours.of_kernels.unwrap() - 1.0).abs() < 1e-9);
    let said = &rows[0].warnings[0];
    assert!(
        said.contains("faster by events (1.111), but 1.000"),
        "{said}"
    );
    let second = rows[2].speedup.as_ref().unwrap();
    assert_eq!(second.verdict, Verdict::Faster);
    assert!(rows[2].warnings.is_empty());
    assert_eq!(rows[0].kernel_samples_us.len(), 25);
    assert!((rows[0].kernel_us.unwrap() - 8.008).abs() < 1e-9);
    assert_eq!(rows[0].enqueue_us, Some(4.0));
}

#[test]
fn ratios_are_also_given_at_equal_clock() {
    let outcomes = [
        traced(90.0, 90.0, 1800.0),
        traced(100.0, 100.0, 1600.0),
        measured(100.0, None),
    ];
    let rows = rows_of(outcomes, None);
    let speedup = rows[0].speedup.as_ref().unwrap();
    assert_eq!(speedup.verdict, Verdict::Faster);
    assert_eq!(speedup.of_kernels, None);
    let cycles = |row: &Row| row.metrics.cycles.unwrap();
    let at_equal_clock = speedup.at_equal_clock.unwrap();
    assert!((at_equal_clock - cycles(&rows[1]) / cycles(&rows[0])).abs() < 1e-3);
    assert!((at_equal_clock - speedup.ratio * 1600.0 / 1800.0).abs() < 1e-12);
}

#[test]
fn what_is_emulated_is_verified_and_has_no_time() {
    let emulated = |name: &str, fact: Value| {
        Outcome::Emulated(Box::new(Emulated {
            errors: Vec::new(),
            also_right_on: vec!["outliers".to_owned()],
            reference: "full".to_owned(),
            facts: BTreeMap::from([(name.to_owned(), fact)]),
        }))
    };
    let interpreted = emulated("schedules", vec!["AtOnce", "Late"].into());
    let rewritten = emulated("rewritten_for", "sm_90a".into());
    let rows = rows_of([interpreted.clone(), rewritten, interpreted], None);
    for (row, how) in rows
        .iter()
        .zip(["PTX, 2 schedules", "PTX rewritten for sm_90a"])
    {
        assert_eq!((row.status, row.verified), (Status::Emulated, true));
        assert!(row.time.is_none() && row.speedup.is_none() && !row.status.is_failure());
        let reason = row.reason.as_deref().unwrap();
        assert_eq!(
            reason,
            format!("functionally correct under emulation ({how})")
        );
    }
}

#[test]
fn failures_have_a_reason_and_no_time() {
    let wrong = Outcome::Wrong {
        reason: "off".into(),
        errors: Vec::new(),
    };
    let spoilt = Outcome::Spoilt("canary".into());
    let rows = rows_of(
        [wrong, measured(1.0, Some("below the floor")), spoilt],
        None,
    );
    let statuses = rows.iter().map(|row| row.status);
    assert!(statuses.eq([Status::Wrong, Status::Invalid, Status::Invalid]));
    for row in &rows {
        assert!(row.time.is_none() && row.speedup.is_none() && !row.verified);
        assert!(row.reason.is_some());
    }
    assert_eq!(rows[1].samples_us.len(), 20, "samples stay as evidence");
}
