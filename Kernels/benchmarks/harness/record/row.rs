//! One contender on one workload.

use crate::Meta;
use libraries::Library;
use serde::{Deserialize, Serialize};
use stats::{StopReason, Summary, Verdict};
use std::collections::BTreeMap;
use std::fmt;

/// A whole result file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResultFile {
    pub meta: Meta,
    pub rows: Vec<Row>,
}

/// The outcome of a contender on a workload. Only `ok` has a time; `emulated` has passed the gate too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Ok,
    /// Its kernels passed the gate as PTX, interpreted or rewritten for another SM; nobody can time that.
    Emulated,
    /// The gate found a wrong output; never timed, or its time is discarded.
    Wrong,
    /// The contender says it cannot run this workload here.
    Unsupported,
    /// Measured, but a check of the measurement failed.
    Invalid,
    /// It faulted, crashed or returned an error.
    Error,
    /// The watchdog killed it.
    Timeout,
}

impl Status {
    pub const ALL: [Status; 7] = [
        Status::Ok,
        Status::Emulated,
        Status::Wrong,
        Status::Unsupported,
        Status::Invalid,
        Status::Error,
        Status::Timeout,
    ];

    /// Whether a run with such a row exits with code 1.
    pub fn is_failure(self) -> bool {
        !matches!(self, Status::Ok | Status::Emulated | Status::Unsupported)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Status::Ok => "ok",
            Status::Emulated => "emulated",
            Status::Wrong => "wrong",
            Status::Unsupported => "unsupported",
            Status::Invalid => "invalid",
            Status::Error => "error",
            Status::Timeout => "timeout",
        })
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    pub op: String,
    pub workload: Workload,
    pub contender: Contender,
    /// Architecture of the code that ran.
    pub arch: String,
    pub dtype: String,
    pub status: Status,
    /// The gate passed before timing and in the checked rounds.
    pub verified: bool,
    /// The kind of inputs that it was timed on; absent in files of older programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inputs: Option<String>,
    /// Other kinds of inputs on which it passed the gate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also_right_on: Vec<String>,
    /// How much of the output was compared with the reference's: `full`, `slices 3 of 64`, or
    /// `sample` if only with the oracle's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// Timed rounds whose outputs passed the gate as well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checked_rounds: Option<usize>,
    /// Why the status is not `ok`, or what `emulated` says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// One entry per output tensor that the gate checked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<Errors>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<Time>,
    /// One entry per round, null where the sample was dropped: rows of one workload pair up by index.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        serialize_with = "picoseconds"
    )]
    pub samples_us: Vec<Option<f64>>,
    /// How many of these rounds each process ran, in order. Absent in files of older programs, which
    /// used one process.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rounds_per_process: Vec<usize>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dropped: Vec<DroppedSample>,
    /// Median host time of the call that queues one execution; absent where calls do the work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enqueue_us: Option<f64>,
    /// Median of `kernel_samples_us`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_us: Option<f64>,
    /// First kernel's start to last kernel's end, by the activity tracer, where some time of the
    /// workload is too small for events alone. Rows of one workload pair up by index.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        serialize_with = "each_to_picosecond"
    )]
    pub kernel_samples_us: Vec<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clocks: Option<Clocks>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cross_check: Option<CrossCheck>,
    #[serde(default, skip_serializing_if = "Metrics::is_empty")]
    pub metrics: Metrics,
    /// Absent for the baseline itself and if either side has no time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speedup: Option<Speedup>,
    /// Our contenders only: against each other contender of the race with a time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub against: Vec<Speedup>,
    /// Our contenders only: against the fastest baseline of the race.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub against_best: Option<Best>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// What the contender chose for this workload: tile, kernel, planning time.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub facts: BTreeMap<String, serde_json::Value>,
    /// The command that reproduces this row.
    pub repro: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Workload {
    pub name: String,
    pub suite: String,
    pub provenance: String,
    pub axes: BTreeMap<String, serde_json::Value>,
    /// How much it counts in means, if not as much as any other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<f64>,
    /// The shape as its workload file has it, so that the row can be measured again without the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shape: Option<serde_json::Map<String, serde_json::Value>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContenderKind {
    Own,
    Baseline,
    Reference,
    /// One of ours once more, raced against itself.
    Control,
}

impl fmt::Display for ContenderKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            ContenderKind::Own => "own",
            ContenderKind::Baseline => "baseline",
            ContenderKind::Reference => "reference",
            ContenderKind::Control => "control",
        })
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contender {
    #[serde(deserialize_with = "crate::aliases::deserialize_name")]
    pub name: String,
    pub kind: ContenderKind,
    pub version: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_sha256: Option<String>,
    /// Libraries loaded at run time; the first one determines its version.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub libraries: Vec<Library>,
    /// What is inside the timed region.
    pub timed_region: String,
}

/// Distance of an output tensor from the oracle over the gate's sample, and the tolerance. A
/// non-finite error has no number here; the row's reason names it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Errors {
    pub tensor: String,
    /// Elements compared with the oracle.
    pub sampled: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_abs: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_abs: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rel_l2: Option<f64>,
    pub budget: Budget,
}

/// The largest errors that pass.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Budget {
    pub max_abs: f64,
    pub rel_l2: f64,
}

/// Statistics of the kept samples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Time {
    pub median_us: f64,
    pub mean_us: f64,
    /// Absent for a single sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub std_us: Option<f64>,
    pub min_us: f64,
    pub max_us: f64,
    pub p5_us: f64,
    pub p95_us: f64,
    pub p99_us: f64,
    pub mad_us: f64,
    /// Kept samples.
    pub count: usize,
    /// Why the rounds ended.
    pub stop: StopReason,
}

impl Time {
    pub fn new(summary: &Summary, stop: StopReason) -> Time {
        Time {
            median_us: summary.median,
            mean_us: summary.mean,
            std_us: summary.std,
            min_us: summary.min,
            max_us: summary.max,
            p5_us: summary.p5,
            p95_us: summary.p95,
            p99_us: summary.p99,
            mad_us: summary.mad,
            count: summary.count,
            stop,
        }
    }
}

/// A sample that does not count.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DroppedSample {
    pub round: usize,
    pub time_us: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_mhz: Option<f64>,
    pub reason: String,
}

/// Clocks of the kept samples, and the state of the card around them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Clocks {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference_mhz: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub median_mhz: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_mhz: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_mhz: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power_w: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature_c: Option<f64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub throttle_reasons: Vec<String>,
}

/// The same executions timed by events and by the activity tracer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CrossCheck {
    pub event_us: f64,
    pub activity_us: f64,
}

/// Rates derived from the median time and the workload's cost.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Metrics {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tflops: Option<f64>,
    /// Terabytes per second of logical input and output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tbps: Option<f64>,
    /// Share of the measured roof, 1 = at the roof.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub roof_share: Option<f64>,
    /// Name of that roof: `hbm` for the best bandwidth of `meta.roofs`, else one of their names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub roof: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queries_per_second: Option<f64>,
    /// Energy per execution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy_j: Option<f64>,
    /// Core clock cycles per execution: median time times median clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cycles: Option<f64>,
}

impl Metrics {
    fn is_empty(&self) -> bool {
        *self == Metrics::default()
    }
}

/// Baseline time over this contender's time, from samples paired by round.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Speedup {
    /// Name of the baseline contender, another row of the same workload.
    #[serde(deserialize_with = "crate::aliases::deserialize_name")]
    pub baseline: String,
    pub ratio: f64,
    /// Ends of the 95 % interval.
    pub low: f64,
    pub high: f64,
    /// Rounds in which both have a sample.
    pub pairs: usize,
    pub verdict: Verdict,
    /// The ratio in core clock cycles: what it would be if both ran at the same clock and only the
    /// clock limited them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_equal_clock: Option<f64>,
    /// The ratio of kernel durations, where the verdict depends on it as well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of_kernels: Option<f64>,
}

impl Speedup {
    pub fn new(baseline: &str, ratio: &stats::PairedRatio) -> Speedup {
        Speedup {
            baseline: baseline.to_owned(),
            ratio: ratio.ratio,
            low: ratio.low,
            high: ratio.high,
            pairs: ratio.pairs,
            verdict: ratio.verdict,
            at_equal_clock: None,
            of_kernels: None,
        }
    }
}

/// The speed-up over the fastest baseline. Its interval includes the doubt about which one that is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Best {
    #[serde(flatten)]
    pub speedup: Speedup,
    /// Other baselines that may be the fastest, as far as this race can tell.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contested_by: Vec<String>,
    /// The ratio if each side's plan is added to its time, or a 32nd of it: the share of one layer
    /// if 32 share the plan. Absent if neither side plans.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio_plan_1: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio_plan_32: Option<f64>,
}

/// No timer resolves picoseconds; without such digits a file is half as long.
fn picoseconds<S: serde::Serializer>(
    samples_us: &[Option<f64>],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(
        samples_us
            .iter()
            .map(|sample| sample.map(round_to_picosecond)),
    )
}

fn each_to_picosecond<S: serde::Serializer>(
    samples_us: &[f64],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(samples_us.iter().map(|us| round_to_picosecond(*us)))
}

pub(crate) fn round_to_picosecond(time_us: f64) -> f64 {
    (time_us * 1e6).round() / 1e6
}
