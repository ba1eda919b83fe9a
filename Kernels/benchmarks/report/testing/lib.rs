//! Synthetic result files for tests: a machine with known noise and drift.

use record::{
    Build, Cache, Contender, ContenderKind, Device, DeviceKind, Git, Gpu, Launch, Meta, Metrics,
    Protocol, ResultFile, Roof, Row, Speedup, Status, Time, Timer, Workload,
};
use report_lib::{Collection, Run};
use stats::{paired_ratio, RatioOptions, StopReason, Summary};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A result file of the repository.
pub fn committed(name: &str) -> PathBuf {
    let path = Path::new("results/2026-11-15-h200").join(name);
    std::fs::canonicalize(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Runs the program in a folder: its exit code, what it printed, and what it said on standard error.
pub fn run(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    let program = std::env::var("REPORT").expect("REPORT names the program");
    let program = std::fs::canonicalize(program).expect("the program exists");
    let mut command = Command::new(program);
    command.current_dir(folder).args(arguments);
    command
        .env_remove("BUILD_WORKING_DIRECTORY")
        .env_remove("GITHUB_STEP_SUMMARY");
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().expect("the program starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (status.code().unwrap_or(-1), text(&stdout), text(&stderr))
}

/// Seeded noise (xorshift64*).
pub struct Noise(u64);

impl Noise {
    pub fn new(seed: u64) -> Noise {
        let mut noise = Noise(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        for _ in 0..8 {
            noise.uniform();
        }
        noise
    }

    pub fn uniform(&mut self) -> f64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) as f64 / (1u64 << 53) as f64
    }

    pub fn gauss(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

pub fn meta(device: &str) -> Meta {
    Meta {
        schema: record::SCHEMA_VERSION,
        program: "bench_norms".into(),
        argv: vec!["bench_norms".into()],
        git: Some(Git {
            commit: "4f1c2d3".into(),
            dirty: false,
        }),
        build: Build {
            arch: "sm_90a".into(),
            bazel: None,
            rustc: None,
            nvcc: None,
        },
        artifact_lock_sha256: None,
        host: "node-1".into(),
        os: "Linux".into(),
        device: Device {
            kind: DeviceKind::Cuda,
            name: device.into(),
            arch: "sm_90a".into(),
        },
        gpu: Some(Gpu {
            name: device.into(),
            uuid: None,
            compute_capability: "9.0".into(),
            multiprocessors: 132,
            l2_bytes: 50 << 20,
            memory_bytes: 141 << 30,
            ecc: None,
            clock_max_mhz: None,
            clock_application_mhz: None,
            clocks_locked: Some(false),
            memory_clock_max_mhz: None,
            power_limit_w: Some(700.0),
        }),
        driver: Some("580.65.06".into()),
        cuda: Some("13.0".into()),
        started_at: "2026-01-02T03:04:05Z".into(),
        ended_at: Some("2026-01-02T03:05:06Z".into()),
        complete: true,
        seed: 42,
        entropy: Some(7),
        shapes_seed: Some(3),
        shard: None,
        protocol: Protocol {
            preset: None,
            processes: 1,
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
            cross_check: true,
        },
        roofs: vec![
            roof("hbm_copy", 4.2, "TB/s"),
            roof("tensor_bf16", 950.0, "TFLOP/s"),
        ],
        libraries: Vec::new(),
        spent_s: Default::default(),
        warnings: Vec::new(),
    }
}

fn roof(name: &str, value: f64, unit: &str) -> Roof {
    Roof {
        name: name.into(),
        value,
        unit: unit.into(),
        measured_at: None,
    }
}

/// A row with these samples; `rows` is the workload's first axis.
pub fn row(op: &str, rows: usize, contender: &str, kind: ContenderKind, samples: Vec<f64>) -> Row {
    let summary = Summary::of(&samples).expect("samples are finite");
    let median_us = summary.median;
    let bytes = (rows * 4096 * 4) as f64;
    let tbps = bytes / (median_us * 1e6);
    // serde knows every field's default; a test need not.
    let mut row: Row = serde_json::from_value(serde_json::json!({
        "op": op,
        "workload": {"name": "", "suite": "quack", "provenance": "test", "axes": {}},
        "contender": {"name": contender, "kind": "own", "version": "1.0", "timed_region": "one kernel"},
        "arch": "sm_90a", "dtype": "bf16", "status": "ok", "verified": true,
        "repro": format!("bench_norms --device cpu --configs {rows}x4096 --contenders {contender}"),
    }))
    .expect("the row is whole");
    row.workload = Workload {
        name: format!("{rows}x4096"),
        axes: [("rows", rows), ("columns", 4096)]
            .map(|(name, size)| (name.to_owned(), size.into()))
            .into(),
        ..row.workload
    };
    row.contender = Contender {
        kind,
        ..row.contender
    };
    row.time = Some(Time::new(&summary, StopReason::Precise));
    row.samples_us = samples.into_iter().map(Some).collect();
    row.metrics = Metrics {
        tflops: Some(tbps / 2.0),
        tbps: Some(tbps),
        roof_share: Some((tbps / 4.2).min(1.0)),
        roof: Some("hbm_copy".into()),
        ..Metrics::default()
    };
    row
}

pub fn failed_row(op: &str, rows: usize, contender: &str, status: Status, reason: &str) -> Row {
    Row {
        status,
        verified: status == Status::Emulated,
        reason: Some(reason.into()),
        time: None,
        samples_us: Vec::new(),
        metrics: Metrics::default(),
        ..row(op, rows, contender, ContenderKind::Own, vec![1.0; 10])
    }
}

/// Adds the speed-up over a baseline row of the same rounds.
pub fn pair(own: &mut Row, baseline: &Row) {
    let samples = |row: &Row| {
        row.samples_us
            .iter()
            .flatten()
            .copied()
            .collect::<Vec<f64>>()
    };
    let options = RatioOptions {
        resamples: 500,
        ..RatioOptions::default()
    };
    let ratio = paired_ratio(&samples(baseline), &samples(own), &options).expect("enough pairs");
    own.speedup = Some(Speedup::new(&baseline.contender.name, &ratio));
}

pub fn file(device: &str, rows: Vec<Row>) -> ResultFile {
    ResultFile {
        meta: meta(device),
        rows,
    }
}

pub fn collection(files: Vec<ResultFile>) -> Collection {
    let run = |(index, file)| Run {
        origin: format!("run{index}.json"),
        file,
    };
    Collection {
        runs: files.into_iter().enumerate().map(run).collect(),
    }
}

/// Two devices, two ops, a baseline, a loss, and a row of every other status.
pub fn sample() -> Collection {
    let device = |name: &str, speed: f64| {
        let mut noise = Noise::new(7);
        let mut rows = Vec::new();
        for op in ["rmsnorm_fwd", "softmax_fwd"] {
            for (index, size) in [1024, 4096, 16384, 65536].into_iter().enumerate() {
                let time_us = (size * 4096 * 4) as f64 / (speed * 1e6) + 2.0;
                let mut samples = |scale: f64| -> Vec<f64> {
                    (0..60)
                        .map(|_| time_us * scale * (1.0 + 0.004 * noise.gauss()))
                        .collect()
                };
                let scale = [0.8, 0.95, 1.0, 1.1][index];
                let baseline = row(op, size, "quack", ContenderKind::Baseline, samples(1.0));
                let mut own = row(op, size, "ours", ContenderKind::Own, samples(scale));
                pair(&mut own, &baseline);
                rows.extend([own, baseline]);
            }
        }
        for status in Status::ALL
            .into_iter()
            .filter(|status| *status != Status::Ok)
        {
            let name = format!("faulty_{status}");
            rows.push(failed_row(
                "softmax_fwd",
                1024,
                &name,
                status,
                "a <reason> & more",
            ));
        }
        file(name, rows)
    };
    collection(vec![device("NVIDIA H200", 4.0), device("NVIDIA B200", 7.0)])
}
