//! Facts about the whole run: program, machine, protocol.

use libraries::Library;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Everything needed to judge the rows or to reproduce them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Meta {
    /// Format version, see `SCHEMA_VERSION`.
    pub schema: u32,
    pub program: String,
    pub argv: Vec<String>,
    /// Absent if the build was not stamped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git: Option<Git>,
    pub build: Build,
    /// SHA-256 of the lock file of prebuilt artifacts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_lock_sha256: Option<String>,
    pub host: String,
    pub os: String,
    pub device: Device,
    /// Absent on the CPU device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<Gpu>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cuda: Option<String>,
    /// RFC 3339, UTC.
    pub started_at: String,
    /// Absent during the run and in the partial file of an interrupted one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
    /// False in the partial file of an interrupted run.
    pub complete: bool,
    pub seed: u64,
    /// Determined what was checked, and when; absent in files of older programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entropy: Option<u64>,
    /// Drew the shapes of the suite `unseen`; absent in files of older programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shapes_seed: Option<u64>,
    /// `2/4` if the run was one of several shards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<String>,
    pub protocol: Protocol,
    #[serde(default)]
    pub roofs: Vec<Roof>,
    /// Libraries that the harness loaded for measuring.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub libraries: Vec<Library>,
    /// Wall time by activity of the worker, in seconds.
    #[serde(default)]
    pub spent_s: BTreeMap<String, f64>,
    #[serde(default)]
    pub warnings: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Git {
    pub commit: String,
    /// Whether the tree had uncommitted changes.
    pub dirty: bool,
}

/// What the program was built for and with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Build {
    /// `sm_90a`, `sm_100a+sm_90a`, `compute_100a` for the interpreter, `none` for a build without CUDA, ...
    pub arch: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bazel: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rustc: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nvcc: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeviceKind {
    Cpu,
    Cuda,
    /// Kernels as PTX, interpreted.
    Ptx,
}

impl fmt::Display for DeviceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            DeviceKind::Cpu => "cpu",
            DeviceKind::Cuda => "cuda",
            DeviceKind::Ptx => "ptx",
        })
    }
}

/// What ran the kernels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Device {
    pub kind: DeviceKind,
    pub name: String,
    pub arch: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Gpu {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<String>,
    /// `9.0`, `10.0`.
    pub compute_capability: String,
    pub multiprocessors: u32,
    pub l2_bytes: u64,
    pub memory_bytes: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ecc: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_max_mhz: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_application_mhz: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clocks_locked: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_clock_max_mhz: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power_limit_w: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cache {
    Cold,
    Hot,
}

/// How the work got onto the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Launch {
    /// By calls of the contender.
    Direct,
    /// By replaying a graph captured from those calls.
    Graph,
}

/// What a sample's time covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Timer {
    /// The whole operation, between marks around it.
    Op,
    /// From the start of its first kernel to the end of its last, by the activity tracer.
    Kernel,
}

/// The parameters in effect, not as requested.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Protocol {
    /// Name of the preset that set the rest; absent if it was put together by hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preset: Option<String>,
    /// Processes that measure each workload.
    #[serde(default = "one")]
    pub processes: usize,
    pub cache: Cache,
    pub launch: Launch,
    pub timer: Timer,
    /// Length of the blocks that are samples, with `--steady`; otherwise a sample is one execution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steady_ms: Option<f64>,
    /// False with `--skip-verify`; then no row is verified.
    pub verify: bool,
    pub warmup_ms: f64,
    /// Timed work per contender requested by the user, instead of the adaptive stop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeat_ms: Option<f64>,
    pub rounds_min: usize,
    pub rounds_max: usize,
    /// Number of rounds requested by the user, instead of the adaptive stop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rounds_fixed: Option<usize>,
    /// Minimum time and time limit for the rounds of one workload.
    pub duration_min_ms: f64,
    pub budget_ms: f64,
    /// Half-width of the ratio's 95 % interval that ends a clear case, and a case near 1.
    pub half_width: f64,
    pub half_width_near: f64,
    /// Equivalence margin of the verdicts.
    pub margin: f64,
    pub bootstrap_resamples: usize,
    /// Samples below this share of the reference clock are dropped.
    pub clock_fraction: f64,
    /// The timer's overhead, already subtracted from every sample.
    pub timer_overhead_us: f64,
    /// Whether events were checked against CUPTI activity records.
    pub cross_check: bool,
}

/// What programs used before there was a choice.
fn one() -> usize {
    1
}

/// A measured peak of the machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Roof {
    /// `hbm_copy`, `hbm_read`, `tensor_bf16`, ...
    pub name: String,
    pub value: f64,
    /// `TB/s` or `TFLOP/s`.
    pub unit: String,
    /// RFC 3339, UTC, if it was measured before this run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured_at: Option<String>,
}
