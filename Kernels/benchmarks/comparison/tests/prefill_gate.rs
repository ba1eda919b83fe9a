//! Prefill attention of every kind of batch passes the gate: on the GPU with all CUDA contenders, on
//! the CPU with the CPU contenders.

use contender::{Kind, Problem, Workload};
use device::Device;
use drawn::{Draw, PrefillLimits};
use examine::{cpu, gpu, Rules};
use numeric::DType;
use workloads::{PrefillProblem, PrefillSuite};

const SEED: u64 = 21;
const RULES: Rules = Rules {
    seed: SEED,
    units: 24,
    units_second: 8,
    adopts_reference: true,
    may_decline: |identity| identity.name != "ours",
};

/// How many and how large the batches of a device may be.
struct Scale {
    batches: u64,
    limits: PrefillLimits,
    /// Query heads times visible pairs.
    pairs: f64,
}

const GPU: Scale = Scale {
    batches: 200,
    limits: PrefillLimits {
        sequences: 12,
        longest: 2500,
        dtypes: &[DType::Bf16, DType::F16],
        dims: &[(64, None), (128, None), (192, Some(128)), (256, None)],
    },
    pairs: 1e12,
};
/// Where kernels are rewritten for another GPU, and take a thousand times as long.
const EMULATED: Scale = Scale {
    batches: 120,
    limits: PrefillLimits {
        sequences: 4,
        longest: 400,
        ..GPU.limits
    },
    pairs: 1e7,
};
const CPU: Scale = Scale {
    batches: 60,
    limits: PrefillLimits {
        sequences: 5,
        longest: 100,
        dtypes: &[DType::Bf16, DType::F16, DType::F32],
        dims: &[(64, None), (128, None), (192, Some(128)), (80, None)],
    },
    pairs: 1e6,
};

#[test]
fn cpu_contenders_pass() {
    let device = cpu();
    pass(&*device, random_problems(&CPU));
    pass(&*device, suite_problems(&CPU));
}

#[test]
fn gpu_contenders_pass_random_batches() {
    if let Some(device) = gpu() {
        let problems = random_problems(scale_of(&*device));
        match device.info().emulated {
            // Others' blocks without work free tensor memory that they have not allocated, which ends the process.
            true => pass_with(&*device, problems, |kind| kind != Kind::Baseline),
            false => pass(&*device, problems),
        }
    }
}

#[test]
fn gpu_contenders_pass_suites() {
    if let Some(device) = gpu() {
        pass(&*device, suite_problems(scale_of(&*device)));
    }
}

fn scale_of(device: &dyn Device) -> &'static Scale {
    match device.info().emulated {
        true => &EMULATED,
        false => &GPU,
    }
}

fn random_problems(scale: &Scale) -> Vec<PrefillProblem> {
    Draw::all(SEED, scale.batches)
        .map(|draw| drawn::prefill(&draw, &scale.limits))
        .collect()
}

fn suite_problems(scale: &Scale) -> Vec<PrefillProblem> {
    let mut problems = Vec::new();
    for suite in PrefillSuite::all() {
        for &op in suite.ops() {
            for (shape, workload) in suite.workloads() {
                if shape.visible_pairs() * shape.heads as f64 > scale.pairs {
                    continue;
                }
                for &dtype in scale.limits.dtypes {
                    let problem = PrefillProblem::new(op, shape.clone(), dtype, workload.clone());
                    problems.push(problem.expect("a valid batch"));
                }
            }
        }
    }
    problems
}

fn pass(device: &dyn Device, problems: Vec<PrefillProblem>) {
    pass_with(device, problems, |_| true);
}

fn pass_with(device: &dyn Device, problems: Vec<PrefillProblem>, takes_part: fn(Kind) -> bool) {
    let mut contenders = prefill_contenders::contenders(device.info().kind);
    contenders.retain(|contender| takes_part(contender.identity().kind));
    examine::pass(device, &contenders, &problems, &RULES, |problem| {
        let Workload { suite, name, .. } = problem.workload();
        let (op, dtype, shape) = (problem.op(), problem.dtype(), &problem.shape);
        format!("{op} {suite}/{name} {dtype} {shape:?}")
    });
}
