//! How often comparisons of simulated runs are right: false alarms and missed regressions.

use record::{ContenderKind, Library, Source};
use report_lib::{compare, Collection, CompareOptions, Comparison, Method};
use report_testing::{collection, file, pair, row, Noise};
use stats::Verdict;

const WORKLOADS: usize = 24;
const ROUNDS: usize = 120;
const OPTIONS: CompareOptions = CompareOptions {
    threshold: 0.02,
    across_devices: false,
};

/// A machine that varies from run to run.
struct Machine {
    /// Noise of each sample.
    sigma: f64,
    /// Noise of the whole run: another day, another temperature.
    run_sigma: f64,
    /// Noise of each row: where its buffers ended up.
    row_sigma: f64,
    /// Slow random walk over a workload's rounds, shared by its contenders.
    walk: f64,
    /// Whether there is a baseline to pair with.
    with_baseline: bool,
}

const PAIRED: Machine = Machine {
    sigma: 0.008,
    run_sigma: 0.015,
    row_sigma: 0.001,
    walk: 0.001,
    with_baseline: true,
};

/// Without a baseline every time includes the machine's drift, so such a machine must be calmer.
const DIRECT: Machine = Machine {
    sigma: 0.008,
    run_sigma: 0.001,
    row_sigma: 0.002,
    walk: 0.0,
    with_baseline: false,
};

/// A run; the workload `slow` of our kernel takes `factor` times as long.
fn run(machine: &Machine, seed: u64, slow: usize, factor: f64) -> Collection {
    let mut noise = Noise::new(seed);
    let day = 1.0 + machine.run_sigma * noise.gauss();
    let mut rows = Vec::new();
    for workload in 0..WORKLOADS {
        let time_us = 10.0 * 1.3f64.powi(workload as i32) * day;
        let planted = if workload == slow { factor } else { 1.0 };
        let ours = planted * 0.9 * (1.0 + machine.row_sigma * noise.gauss());
        let theirs = 1.0 + machine.row_sigma * noise.gauss();
        let (mut own, mut other, mut drift) = (Vec::new(), Vec::new(), 0.0);
        for _ in 0..ROUNDS {
            drift += machine.walk * noise.gauss();
            let mut sample = |scale: f64| {
                // One sample in a hundred is interrupted.
                let hit = if noise.uniform() < 0.01 { 3.0 } else { 1.0 };
                time_us * scale * hit * (1.0 + drift + machine.sigma * noise.gauss())
            };
            own.push(sample(ours));
            other.push(sample(theirs));
        }
        let size = 1024 * (workload + 1);
        let mut own = row("rmsnorm_fwd", size, "ours", ContenderKind::Own, own);
        if machine.with_baseline {
            let kind = ContenderKind::Baseline;
            let baseline = row("rmsnorm_fwd", size, "quack", kind, other);
            pair(&mut own, &baseline);
            rows.push(baseline);
        }
        rows.push(own);
    }
    collection(vec![file("NVIDIA H200", rows)])
}

fn slower(comparison: &Comparison) -> Vec<&str> {
    let changes = comparison.changes.iter();
    changes
        .filter(|change| change.verdict == Verdict::Slower)
        .map(|change| change.key.workload.as_str())
        .collect()
}

fn pairs(machine: &Machine, factor: f64) -> impl Iterator<Item = Comparison> + '_ {
    (0..100).map(move |index| {
        let base = run(machine, 2 * index + 1, 0, 1.0);
        let new = run(machine, 2 * index + 2, 5, factor);
        compare(&base, &new, &OPTIONS).expect("the runs are comparable")
    })
}

#[test]
fn a_hundred_pairs_of_equal_runs_raise_at_most_one_false_alarm() {
    for machine in [PAIRED, DIRECT] {
        let alarms = pairs(&machine, 1.0).filter(|comparison| !slower(comparison).is_empty());
        let alarms = alarms.count();
        println!(
            "baseline {}: {alarms} false alarms of 100",
            machine.with_baseline
        );
        assert!(alarms <= 1, "{alarms} false alarms");
    }
}

#[test]
fn a_planted_two_percent_regression_is_caught() {
    for machine in [PAIRED, DIRECT] {
        let planted = 1024 * (5 + 1);
        let planted = format!("{planted}x4096");
        let caught = pairs(&machine, 1.02)
            .filter(|comparison| slower(comparison).contains(&planted.as_str()))
            .count();
        println!("baseline {}: {caught} of 100 caught", machine.with_baseline);
        assert!(caught >= 95, "{caught} caught");
    }
}

#[test]
fn equal_runs_agree_as_often_as_their_intervals_say() {
    let shares = |row_sigma| {
        let machine = Machine {
            row_sigma,
            ..PAIRED
        };
        let (mut all, mut here, mut elsewhere) = (0, 0, 0);
        for found in pairs(&machine, 1.0).take(20) {
            all += found.agreement.all;
            here += found.agreement.here;
            elsewhere += found.agreement.elsewhere;
        }
        assert_eq!(all, 20 * WORKLOADS);
        [here, elsewhere].map(|count| count as f64 / all as f64)
    };
    let [here, elsewhere] = shares(0.0);
    assert!(
        (0.9..0.999).contains(&here) && elsewhere > 0.999,
        "{here}, {elsewhere}"
    );
    // Cards apart by as much as is allowed for.
    let [here, elsewhere] = shares(0.01 / std::f64::consts::SQRT_2);
    assert!(
        here < 0.7 && (0.93..0.97).contains(&elsewhere),
        "{here}, {elsewhere}"
    );
    let [_, elsewhere] = shares(0.02);
    assert!(elsewhere < 0.6, "{elsewhere}");
}

#[test]
fn a_slow_machine_is_no_regression_where_a_baseline_shows_it() {
    let calm = Machine {
        run_sigma: 0.0,
        ..PAIRED
    };
    let base = run(&calm, 1, 0, 1.0);
    let mut new = run(&calm, 2, 0, 1.0);
    for row in &mut new.runs[0].file.rows {
        for sample in row.samples_us.iter_mut().flatten() {
            *sample *= 1.07;
        }
    }
    let comparison = compare(&base, &new, &OPTIONS).unwrap();
    assert!(slower(&comparison).is_empty(), "{comparison:?}");
    assert!((comparison.drift.unwrap() - 1.07).abs() < 0.01);
    let paired = |change: &&report_lib::Change| matches!(change.method, Method::Paired(_));
    assert_eq!(comparison.changes.iter().filter(paired).count(), WORKLOADS);
}

#[test]
fn a_lower_clock_is_named_and_takes_the_verdict_of_times() {
    let base = run(&DIRECT, 1, 0, 1.0);
    let mut new = run(&DIRECT, 2, 5, 1.1);
    let mut base = base;
    for (side, clock) in [(&mut base, 1980.0), (&mut new, 1700.0)] {
        for row in &mut side.runs[0].file.rows {
            row.clocks = Some(record::Clocks {
                median_mhz: Some(clock),
                ..record::Clocks::default()
            });
        }
    }
    let comparison = compare(&base, &new, &OPTIONS).unwrap();
    assert!(slower(&comparison).is_empty());
    let notes = &comparison.changes[0].notes;
    assert!(
        notes.iter().any(|note| note == "clock 1980 -> 1700 MHz"),
        "{notes:?}"
    );
}

#[test]
fn failures_and_lost_rows_are_told_and_so_is_the_environment() {
    let base = run(&PAIRED, 1, 0, 1.0);
    let mut new = run(&PAIRED, 2, 0, 1.0);
    let rows = &mut new.runs[0].file.rows;
    rows.remove(0);
    rows[0] = report_testing::failed_row(
        "rmsnorm_fwd",
        1024,
        "ours",
        record::Status::Wrong,
        "'y'[17] is 3",
    );
    new.runs[0].file.meta.driver = Some("590.1".into());
    new.runs[0].file.meta.roofs[0].value = 3.9;
    let comparison = compare(&base, &new, &OPTIONS).unwrap();
    assert_eq!(comparison.broken.len(), 1);
    assert!(comparison.broken[0].1.contains("'y'[17] is 3"));
    assert_eq!(comparison.missing.len(), 1);
    for line in [
        "driver: 580.65.06 -> 590.1",
        "roof hbm_copy: 4.200 -> 3.900 TB/s",
    ] {
        assert!(
            comparison.environment.iter().any(|found| found == line),
            "{line}"
        );
    }
    let text = report_lib::to_text(&comparison);
    assert!(
        text.contains("1 broken") && text.contains("590.1"),
        "{text}"
    );
}

/// A library whose only file has this sha256.
fn cudnn(digit: char, source: Source) -> Library {
    Library {
        name: "cudnn".into(),
        version: "9.27.0".into(),
        source,
        artifact: None,
        files: [("libcudnn.so.9".into(), digit.to_string().repeat(64))].into(),
    }
}

#[test]
fn other_bytes_of_a_library_are_told_and_are_no_unchanged_baseline() {
    let with = |seed: u64, library: Option<Library>| {
        let mut run = run(&PAIRED, seed, 0, 1.0);
        for row in &mut run.runs[0].file.rows {
            if row.contender.kind == ContenderKind::Baseline {
                row.contender.libraries = library.iter().cloned().collect();
            }
        }
        run
    };
    let told = |base: &Collection, new: &Collection| {
        let comparison = compare(base, new, &OPTIONS).unwrap();
        let lines = comparison.environment.iter();
        let mut line = lines.filter(|line| line.starts_with("libraries of quack"));
        (line.next().cloned(), comparison)
    };
    let base = with(1, Some(cudnn('a', Source::Lock)));
    let (line, comparison) = told(&base, &with(2, Some(cudnn('b', Source::Override))));
    let line = line.unwrap();
    assert!(
        line.contains("from lock") && line.contains("from override"),
        "{line}"
    );
    let paired = |change: &report_lib::Change| matches!(change.method, Method::Paired(_));
    assert!(!comparison.changes.iter().any(paired));
    let noted = |change: &report_lib::Change| change.notes == ["different bytes of cudnn"];
    assert_eq!(
        comparison.changes.iter().filter(|c| noted(c)).count(),
        WORKLOADS
    );
    let (line, _) = told(&with(1, None), &base);
    assert!(line.unwrap().contains("not recorded ->"));
    assert_eq!(
        told(&base, &with(2, Some(cudnn('a', Source::Lock)))).0,
        None
    );
}

#[test]
fn runs_that_cannot_be_compared_are_refused() {
    let base = run(&PAIRED, 1, 0, 1.0);
    let mut other = base.clone();
    other.runs[0].file.meta.device.name = "NVIDIA B200".into();
    let error = compare(&base, &other, &OPTIONS).unwrap_err().to_string();
    assert!(error.contains("--across-devices"), "{error}");
    let across = CompareOptions {
        across_devices: true,
        ..OPTIONS
    };
    assert!(compare(&base, &other, &across).is_ok());
    let (mut hot, mut steady) = (base.clone(), base.clone());
    hot.runs[0].file.meta.protocol.cache = record::Cache::Hot;
    steady.runs[0].file.meta.protocol.steady_ms = Some(500.0);
    for other in [hot, steady] {
        let error = compare(&base, &other, &OPTIONS).unwrap_err().to_string();
        assert!(error.contains("measure both the same way"), "{error}");
    }
}
