//! Result files for tests: every status, every optional field present and absent.

use crate::*;
use std::collections::BTreeMap;

use stats::{RatioOptions, StopReason, Summary};

pub(crate) fn meta(kind: DeviceKind) -> Meta {
    let cuda = kind == DeviceKind::Cuda;
    let only_cuda = |text: &str| cuda.then(|| text.to_owned());
    Meta {
        schema: SCHEMA_VERSION,
        program: "bench_norms".into(),
        argv: ["bench_norms", "--suite", "quack"]
            .map(String::from)
            .to_vec(),
        git: Some(Git {
            commit: "4f1c2d3".into(),
            dirty: true,
        }),
        build: Build {
            arch: if cuda { "sm_90a" } else { "none" }.into(),
            bazel: Some("7.7.1".into()),
            rustc: Some("1.95.0".into()),
            nvcc: only_cuda("13.0"),
        },
        artifact_lock_sha256: Some("ab".repeat(32)),
        host: "node-1".into(),
        os: "Linux 6.8".into(),
        device: Device {
            kind,
            name: if cuda {
                "NVIDIA H200"
            } else {
                "Example CPU, 2 cores"
            }
            .into(),
            arch: if cuda { "sm_90a" } else { "x86_64" }.into(),
        },
        gpu: cuda.then(|| Gpu {
            name: "NVIDIA H200".into(),
            uuid: Some("GPU-0000".into()),
            compute_capability: "9.0".into(),
            multiprocessors: 132,
            l2_bytes: 50 << 20,
            memory_bytes: 141 << 30,
            ecc: Some(true),
            clock_max_mhz: Some(1980.0),
            clock_application_mhz: None,
            clocks_locked: Some(false),
            memory_clock_max_mhz: Some(3201.0),
            power_limit_w: Some(700.0),
        }),
        driver: only_cuda("580.65.06"),
        cuda: only_cuda("13.0"),
        started_at: "2025-01-02T03:04:05Z".into(),
        ended_at: Some("2025-01-02T03:05:06.5Z".into()),
        complete: true,
        seed: 42,
        entropy: Some(7),
        shapes_seed: Some(3),
        shard: None,
        protocol: Protocol {
            preset: Some("published".into()),
            processes: 3,
            cache: Cache::Cold,
            launch: Launch::Direct,
            timer: Timer::Op,
            steady_ms: None,
            verify: true,
            warmup_ms: 25.0,
            repeat_ms: None,
            rounds_min: 10,
            rounds_max: 10_000,
            rounds_fixed: None,
            duration_min_ms: 100.0,
            budget_ms: 2000.0,
            half_width: 0.005,
            half_width_near: 0.002,
            margin: 0.005,
            bootstrap_resamples: 2000,
            clock_fraction: 0.75,
            timer_overhead_us: 0.0,
            cross_check: cuda,
        },
        roofs: vec![Roof {
            name: "hbm_copy".into(),
            value: 4.214,
            unit: "TB/s".into(),
            measured_at: None,
        }],
        libraries: cuda.then(|| library("cupti")).into_iter().collect(),
        spent_s: [("being timed".to_owned(), 1.5)].into(),
        warnings: vec!["clocks are not locked".into()],
    }
}

/// A library from the lock.
pub(crate) fn library(name: &str) -> Library {
    Library {
        name: name.into(),
        version: "9.27.0".into(),
        source: Source::Lock,
        artifact: Some(Artifact {
            name: format!("nvidia-{name}"),
            version: "9.27.0.42".into(),
            sha256: "cd".repeat(32),
        }),
        files: [(format!("lib{name}.so.9"), "ef".repeat(32))].into(),
    }
}

/// A library named by the user.
pub(crate) fn own_library(name: &str) -> Library {
    Library {
        source: Source::Override,
        artifact: None,
        ..library(name)
    }
}

/// A row with times around `scale` times 100 us.
pub(crate) fn ok_row(workload: &str, contender: &str, scale: f64) -> Row {
    let samples = samples(scale);
    let summary = Summary::of(&samples).unwrap();
    let median_us = summary.median;
    Row {
        op: "rmsnorm_fwd".into(),
        workload: Workload {
            name: workload.into(),
            suite: "quack".into(),
            provenance: "shapes of a public benchmark".into(),
            axes: [
                ("m", 32768.into()),
                ("n", 4096.into()),
                ("weight", "f32".into()),
            ]
            .map(|(name, value)| (name.to_owned(), value))
            .into(),
            weight: None,
            shape: None,
        },
        contender: Contender {
            name: contender.into(),
            kind: ContenderKind::Own,
            version: "1.0".into(),
            artifact_sha256: None,
            libraries: Vec::new(),
            timed_region: "one kernel".into(),
        },
        arch: "sm_90a".into(),
        dtype: "bf16".into(),
        status: Status::Ok,
        verified: true,
        inputs: Some("uniform".into()),
        also_right_on: vec!["outliers".into()],
        reference: Some("full".into()),
        checked_rounds: Some(2),
        reason: None,
        errors: vec![Errors {
            tensor: "y".into(),
            sampled: 65536,
            max_abs: Some(0.0078),
            p99_abs: Some(0.0039),
            rel_l2: Some(0.0017),
            budget: Budget {
                max_abs: 0.0312,
                rel_l2: 0.0072,
            },
        }],
        time: Some(Time::new(&summary, StopReason::Precise)),
        samples_us: samples.into_iter().map(Some).collect(),
        rounds_per_process: Vec::new(),
        dropped: Vec::new(),
        enqueue_us: Some(6.5),
        kernel_us: Some(99.0),
        kernel_samples_us: vec![98.0, 99.0, 101.0],
        clocks: Some(Clocks {
            reference_mhz: Some(1980.0),
            median_mhz: Some(1965.0),
            ..Clocks::default()
        }),
        cross_check: Some(CrossCheck {
            event_us: 101.0,
            activity_us: 100.0,
        }),
        metrics: Metrics {
            tflops: Some(1.2e2 / median_us),
            tbps: Some(4.0e2 / median_us),
            roof_share: Some(0.95e2 / median_us),
            roof: Some("hbm_copy".into()),
            cycles: Some(1965.0 * median_us),
            ..Metrics::default()
        },
        speedup: None,
        against: Vec::new(),
        against_best: None,
        warnings: Vec::new(),
        facts: BTreeMap::from([("tile".to_owned(), "128x64".into())]),
        repro: format!("bench_norms --configs {workload} --contenders {contender}"),
    }
}

pub(crate) fn failed_row(workload: &str, contender: &str, status: Status, reason: &str) -> Row {
    Row {
        status,
        verified: status == Status::Emulated,
        inputs: None,
        also_right_on: Vec::new(),
        reference: None,
        checked_rounds: None,
        reason: Some(reason.into()),
        errors: Vec::new(),
        time: None,
        samples_us: Vec::new(),
        enqueue_us: None,
        kernel_us: None,
        kernel_samples_us: Vec::new(),
        clocks: None,
        cross_check: None,
        metrics: Metrics::default(),
        ..ok_row(workload, contender, 1.0)
    }
}

fn samples(scale: f64) -> Vec<f64> {
    let wobble = |round: usize| 1.0 + 1e-4 * ((round * 37) % 23) as f64;
    (0..60)
        .map(|round| (1e5 * scale * wobble(round)).round() / 1e3)
        .collect()
}

/// Three workloads, a winner, a loser, and one row of every status without a time but `emulated`.
pub(crate) fn file(kind: DeviceKind) -> ResultFile {
    let mut rows = Vec::new();
    for (workload, scale) in [
        ("32768x256", 0.8),
        ("32768x4096", 1.05),
        ("8192x131072", 1.001),
    ] {
        let mut baseline = ok_row(workload, "quack", 1.0);
        baseline.contender.kind = ContenderKind::Baseline;
        let mut own = ok_row(workload, "ours", scale);
        own.facts.insert("plan_us".into(), 64.into());
        let options = RatioOptions::default();
        let race = [own.clone(), baseline.clone()];
        own.speedup = Some(speedup_over(&baseline, &own, &options).unwrap());
        own.against = against_others(&own, &race, &options).unwrap();
        own.against_best = against_best(&own, &race, &options).unwrap();
        rows.extend([own, baseline]);
    }
    let mut throttled = ok_row("32768x256", "plain", 1.0);
    throttled.dropped = vec![DroppedSample {
        round: 3,
        time_us: 161.25,
        clock_mhz: Some(1200.0),
        reason: "clock below 75 % of 1980 MHz".into(),
    }];
    throttled.contender.libraries = vec![library("cudnn"), own_library("nvrtc")];
    throttled.warnings = vec!["1 of 60 samples dropped".into()];
    throttled.samples_us[3] = None;
    let kept: Vec<f64> = throttled.samples_us.iter().flatten().copied().collect();
    throttled.time = Some(Time::new(&Summary::of(&kept).unwrap(), StopReason::Budget));
    rows.push(throttled);
    for (status, reason) in [
        (
            Status::Wrong,
            "'y'[17] is 3, the oracle says 1: error 2.000e0, allowed 3.100e-2",
        ),
        (
            Status::Unsupported,
            "n = 131072 is more than 16384, \"by design\"",
        ),
        (
            Status::Invalid,
            "timers disagree: events say 9.00 us, the activity tracer 5.00 us",
        ),
        (
            Status::Error,
            "illegal address\nin kernel | worker restarted",
        ),
        (Status::Timeout, "no answer within 30 s"),
    ] {
        rows.push(failed_row(
            "32768x4096",
            &format!("faulty_{status}"),
            status,
            reason,
        ));
    }
    ResultFile {
        meta: meta(kind),
        rows,
    }
}
