//! Decode attention passes the gate on every suite and on random shapes: on the GPU with our
//! kernels, on the CPU with the CPU contenders.

use contender::Problem;
use device::Device;
use drawn::Draw;
use examine::{cpu, gpu, paged};
use workloads::{DecodeProblem, DecodeSuite};

const SEED: u64 = 20;
const RANDOM_SHAPES: u64 = 200;

/// Most cached tokens per problem: a suite's batch is cut down to it.
const GPU_TOKENS: usize = 1 << 17;
const CPU_TOKENS: usize = 120;

#[test]
fn cpu_contenders_pass() {
    pass(&*cpu(), random_problems(CPU_TOKENS));
    pass(&*cpu(), suite_problems(&[DecodeSuite::Smoke], 1 << 11));
}

#[test]
fn gpu_contenders_pass_random_shapes() {
    if let Some(device) = gpu() {
        pass(&*device, random_problems(1 << 14));
    }
}

#[test]
fn gpu_contenders_pass_suites() {
    if let Some(device) = gpu() {
        let suites: Vec<DecodeSuite> = DecodeSuite::all().collect();
        pass(&*device, suite_problems(&suites, GPU_TOKENS));
    }
}

fn pass(device: &dyn Device, problems: Vec<DecodeProblem>) {
    paged::pass(
        device,
        decode_contenders::contenders,
        &problems,
        |problem| format!("{:?} {}", problem.shape, problem.dtype()),
    );
}

fn random_problems(most_tokens: usize) -> Vec<DecodeProblem> {
    Draw::all(SEED, RANDOM_SHAPES)
        .map(|draw| drawn::decode(&draw, most_tokens))
        .collect()
}

fn suite_problems(suites: &[DecodeSuite], most: usize) -> Vec<DecodeProblem> {
    paged::suite_problems(
        suites.iter().flat_map(|suite| suite.workloads()),
        most,
        |shape| &mut shape.lengths,
        |shape, dtype, workload| DecodeProblem::new(shape, dtype, workload.clone()),
    )
}
