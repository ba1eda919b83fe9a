//! The facts about a run that go into its result file.

use std::fs;
use std::process::Command;
use std::time::Duration;

use contender::DeviceKind;
use record::{Build, Git, Gpu, Meta, Protocol, Roof};
use stats::RatioOptions;
use timing::{CacheState, Launch, Plan, Timer};

use crate::erased::AnyBench;
use crate::options::Options;
use crate::protocol::Machine;
use crate::utc;

/// Facts about the build, passed by Bazel in rustc's environment.
const BAZEL: Option<&str> = option_env!("HEAD_TO_HEAD_BAZEL");
const RUSTC: Option<&str> = option_env!("HEAD_TO_HEAD_RUSTC");
const NVCC: Option<&str> = option_env!("HEAD_TO_HEAD_NVCC");
const ARTIFACT_LOCK_SHA256: Option<&str> = option_env!("HEAD_TO_HEAD_ARTIFACT_LOCK_SHA256");

/// The meta of a run that has just started.
pub fn begin(
    bench: &AnyBench,
    arguments: &[String],
    options: &Options,
    plan: &Plan,
    machine: &Machine,
    roofs: Vec<Roof>,
) -> Meta {
    let (info, state) = (&machine.info, &machine.state);
    let owned = |text: Option<&str>| text.map(str::to_owned);
    let kind = match info.kind {
        DeviceKind::Cpu => record::DeviceKind::Cpu,
        DeviceKind::Cuda => record::DeviceKind::Cuda,
        DeviceKind::Ptx => record::DeviceKind::Ptx,
    };
    let mut warnings = state.warnings();
    let timed = !info.emulated;
    warnings.extend(machine.cross_check_obstacle.iter().map(|why| match timed {
        true => format!("timers are not cross-checked: {why}"),
        false => format!("nothing is timed: {why}"),
    }));
    if roofs.is_empty() && timed {
        warnings.push(
            "no measured roofs for this device: times are not checked against the roofline".into(),
        );
    }
    if options.how.skip_verify {
        warnings.push("verification was skipped: no row is verified".into());
    }
    Meta {
        schema: record::SCHEMA_VERSION,
        program: bench.name.to_owned(),
        argv: arguments.to_vec(),
        git: git(),
        build: Build {
            arch: bench.arch.to_owned(),
            bazel: owned(BAZEL),
            rustc: owned(RUSTC),
            nvcc: owned(NVCC),
        },
        artifact_lock_sha256: owned(ARTIFACT_LOCK_SHA256),
        host: first_line("/proc/sys/kernel/hostname"),
        os: os(),
        device: record::Device {
            kind,
            name: info.name.clone(),
            arch: info.arch.clone(),
        },
        gpu: (info.kind == DeviceKind::Cuda).then(|| gpu(machine)),
        driver: state.driver.clone(),
        cuda: state.cuda.clone(),
        started_at: utc::now(),
        ended_at: None,
        complete: false,
        seed: plan.seed,
        entropy: Some(plan.entropy),
        shapes_seed: Some(options.what.shapes_seed),
        shard: options.what.shard.map(|shard| shard.to_string()),
        protocol: protocol(plan, options, machine),
        roofs,
        libraries: machine.libraries.clone(),
        spent_s: Default::default(),
        warnings,
    }
}

fn gpu(machine: &Machine) -> Gpu {
    let (info, state) = (&machine.info, &machine.state);
    let (major, minor) = info.compute_capability.unwrap_or_default();
    Gpu {
        name: info.name.clone(),
        uuid: info.uuid.clone(),
        compute_capability: format!("{major}.{minor}"),
        multiprocessors: info.multiprocessors,
        l2_bytes: info.l2_bytes,
        memory_bytes: info.memory_bytes,
        ecc: state.ecc,
        clock_max_mhz: state.clock_max_mhz,
        clock_application_mhz: state.clock_application_mhz,
        clocks_locked: state.clocks_locked,
        memory_clock_max_mhz: state.memory_clock_max_mhz,
        power_limit_w: state.power_limit_w,
    }
}

fn protocol(plan: &Plan, options: &Options, machine: &Machine) -> Protocol {
    Protocol {
        preset: options.how.protocol.map(|preset| preset.to_string()),
        processes: options.processes(),
        cache: match plan.cache {
            CacheState::Cold => record::Cache::Cold,
            CacheState::Hot => record::Cache::Hot,
        },
        launch: match plan.launch {
            Launch::Direct => record::Launch::Direct,
            Launch::Graph => record::Launch::Graph,
        },
        timer: match plan.timer {
            Timer::Op => record::Timer::Op,
            Timer::Kernel => record::Timer::Kernel,
        },
        steady_ms: plan.steady.map(milliseconds),
        verify: !options.how.skip_verify,
        warmup_ms: milliseconds(plan.warmup),
        repeat_ms: plan.repeat.map(milliseconds),
        rounds_min: plan.rule.rounds_min,
        rounds_max: plan.rule.rounds_max,
        rounds_fixed: plan.rule.rounds_fixed,
        duration_min_ms: milliseconds(plan.rule.duration_min),
        budget_ms: milliseconds(plan.rule.budget),
        half_width: plan.rule.half_width,
        half_width_near: plan.rule.half_width_near,
        margin: plan.rule.margin,
        bootstrap_resamples: RatioOptions::default().resamples,
        clock_fraction: plan.clock_filter.fraction,
        timer_overhead_us: machine.timer_overhead_us,
        cross_check: machine.cross_check_obstacle.is_none(),
    }
}

/// The commit of a program that runs away from its checkout: what `git describe --always --dirty
/// --abbrev=40` printed where it was built.
const COMMIT_VARIABLE: &str = "HEAD_TO_HEAD_COMMIT";

/// The commit of the tree that `bazel run` has just built from, or the one in the variable; none if
/// unknown.
fn git() -> Option<Git> {
    let Some(folder) = std::env::var_os("BUILD_WORKSPACE_DIRECTORY") else {
        let described = std::env::var(COMMIT_VARIABLE).ok()?;
        let clean = described.strip_suffix("-dirty");
        return Some(Git {
            dirty: clean.is_some(),
            commit: clean.unwrap_or(&described).to_owned(),
        });
    };
    let git = |arguments: &[&str]| {
        let output = Command::new("git")
            .arg("-C")
            .arg(&folder)
            .args(arguments)
            .output()
            .ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_owned())
    };
    let commit = git(&["rev-parse", "HEAD"])?;
    let dirty = !git(&["status", "--porcelain"])?.is_empty();
    Some(Git { commit, dirty })
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

fn first_line(path: &str) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines().next().unwrap_or("unknown").to_owned()
}

fn os() -> String {
    let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let name = release
        .lines()
        .find_map(|line| line.strip_prefix("PRETTY_NAME="))
        .map_or("Linux", |name| name.trim_matches('"'));
    format!(
        "{name}, kernel {}",
        first_line("/proc/sys/kernel/osrelease")
    )
}
