//! Prefill attention of every kind of batch passes the gate: on the GPU with all CUDA contenders, on
//! the CPU with the CPU contenders.

use contender::{Kind, Problem, Workload};
use device::Device;
use examine::{cpu, gpu, Rules};
use numeric::DType;
use workloads::{PrefillOp, PrefillProblem, PrefillShape, PrefillSuite};

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
    sequences: usize,
    longest: usize,
    /// Query heads times visible pairs.
    pairs: f64,
    dtypes: &'static [DType],
    /// Head dims, and those of values where they differ.
    dims: &'static [(usize, Option<usize>)],
}

const GPU: Scale = Scale {
    batches: 200,
    sequences: 12,
    longest: 2500,
    pairs: 1e12,
    dtypes: &[DType::Bf16, DType::F16],
    dims: &[(64, None), (128, None), (192, Some(128)), (256, None)],
};
/// Where kernels are rewritten for another GPU, and take a thousand times as long.
const EMULATED: Scale = Scale {
    batches: 120,
    sequences: 4,
    longest: 400,
    pairs: 1e7,
    ..GPU
};
const CPU: Scale = Scale {
    batches: 60,
    sequences: 5,
    longest: 100,
    pairs: 1e6,
    dtypes: &[DType::Bf16, DType::F16, DType::F32],
    dims: &[(64, None), (128, None), (192, Some(128)), (80, None)],
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

/// Seeded batches of all kinds: lengths 0 and 1, around tile edges, any; cached prefixes; MHA, GQA
/// and MQA; all head dims; with and without the mask.
fn random_problems(scale: &Scale) -> Vec<PrefillProblem> {
    (0..scale.batches)
        .map(|case| random_problem(scale, case))
        .collect()
}

fn random_problem(scale: &Scale, case: u64) -> PrefillProblem {
    let draw = examine::draw(SEED, case);
    let batch = 1 + draw(0, scale.sequences);
    let causal = draw(1, 3) > 0;
    let length = |stream: u32| match draw(stream, 6) {
        0 => 0,
        1 => 1,
        // One below, at or above a multiple of every tile height.
        2 => 64 * (1 + draw(stream + 1, scale.longest / 64)) - 1 + draw(stream + 2, 3),
        3 => 1 + draw(stream + 1, 40),
        _ => 1 + draw(stream + 1, scale.longest),
    };
    let (mut q_lens, mut kv_lens) = (Vec::new(), Vec::new());
    for sequence in 0..batch as u32 {
        let q = length(100 + 16 * sequence);
        let other = length(108 + 16 * sequence);
        q_lens.push(q);
        kv_lens.push(match (causal, draw(106 + 16 * sequence, 2)) {
            (true, 0) => q,
            (true, _) => q + other,
            // No keys only if there are no queries.
            (false, _) => other.max(usize::from(q > 0)),
        });
    }
    if q_lens.iter().all(|&length| length == 0) {
        q_lens.push(1);
        kv_lens.push(1);
    }
    let (heads, kv_heads) = [(1, 1), (4, 4), (4, 1), (8, 2), (6, 2), (7, 1)][draw(2, 6)];
    let (head_dim, value_dim) = scale.dims[draw(3, scale.dims.len())];
    let shape = PrefillShape {
        q_lens,
        kv_lens,
        heads,
        kv_heads,
        head_dim,
        value_dim,
        causal,
    };
    let op = [PrefillOp::Prefill, PrefillOp::PrefillLse][draw(4, 2)];
    let dtype = scale.dtypes[draw(5, scale.dtypes.len())];
    let workload = PrefillSuite::custom(format!("random {case}"));
    PrefillProblem::new(op, shape, dtype, workload).expect("a valid batch")
}

fn suite_problems(scale: &Scale) -> Vec<PrefillProblem> {
    let mut problems = Vec::new();
    for suite in PrefillSuite::all() {
        for &op in suite.ops() {
            for (shape, workload) in suite.workloads() {
                if shape.visible_pairs() * shape.heads as f64 > scale.pairs {
                    continue;
                }
                for &dtype in scale.dtypes {
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
