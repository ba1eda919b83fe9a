//! Native sparse attention, all branches and the gated sum, and dense attention on its shapes pass the
//! gate on all suites and on random shapes: on the GPU with our kernels, on the CPU with the CPU
//! contenders.

use contender::{Kind, Problem};
use device::Device;
use drawn::Draw;
use examine::{cpu, gpu, Rules};
use nsa_contenders::SparseOrDense;
use numeric::DType;
use workloads::{NsaOp, NsaProblem, NsaSuite};

const SEED: u64 = 40;
const RULES: Rules = Rules {
    seed: SEED,
    units: 4,
    units_second: 2,
    adopts_reference: false,
    may_decline: |identity| identity.kind != Kind::Own,
};
const RANDOM_SHAPES: u64 = 200;

/// Most operations for the shapes of a device.
const GPU_PAIRS: usize = 1 << 21;
const CPU_PAIRS: usize = 1 << 14;

#[test]
fn cpu_contenders_pass() {
    let device = cpu();
    let types = [DType::Bf16, DType::F16, DType::F32];
    pass(&*device, random_problems(CPU_PAIRS, &types));
    pass(&*device, suite_problems(&[NsaSuite::Smoke]));
}

#[test]
fn gpu_contenders_pass_random_shapes() {
    if let Some(device) = gpu() {
        pass(
            &*device,
            random_problems(GPU_PAIRS, &[DType::Bf16, DType::F16]),
        );
    }
}

#[test]
fn gpu_contenders_pass_suites() {
    if let Some(device) = gpu() {
        let suites: Vec<NsaSuite> = NsaSuite::all().collect();
        pass(&*device, suite_problems(&suites));
    }
}

/// With at most `pairs` query tokens x keys.
fn random_problems(pairs: usize, types: &[DType]) -> Vec<SparseOrDense> {
    Draw::all(SEED, RANDOM_SHAPES)
        .map(|draw| SparseOrDense::Sparse(drawn::nsa(&draw, pairs, types)))
        .collect()
}

fn suite_problems(suites: &[NsaSuite]) -> Vec<SparseOrDense> {
    let mut problems = Vec::new();
    for (shape, workload) in suites.iter().flat_map(|suite| suite.workloads()) {
        for op in NsaOp::ALL {
            let problem = NsaProblem::new(op, shape, DType::Bf16, workload.clone());
            problems.push(SparseOrDense::Sparse(problem));
        }
        let dense = SparseOrDense::dense(shape, DType::Bf16, workload);
        problems.push(dense.expect("a sparse attention shape is also a dense one"));
    }
    problems
}

fn pass(device: &dyn Device, problems: Vec<SparseOrDense>) {
    let contenders = nsa_contenders::contenders(device.info().kind);
    examine::pass(device, &contenders, &problems, &RULES, |problem| {
        let (op, name) = (problem.op(), &problem.workload().name);
        format!("{op} {name} {}", problem.dtype())
    });
}
