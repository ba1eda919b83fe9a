//! Latent-attention decode passes the gate on every suite and on random shapes: on the GPU with our
//! kernels, on the CPU with the CPU contenders.

use contender::Problem;
use device::Device;
use drawn::Draw;
use examine::{cpu, gpu, paged};
use workloads::{MlaDecodeProblem, MlaSuite};

const SEED: u64 = 20;
const RANDOM_SHAPES: u64 = 200;

/// Most cached tokens per problem: a suite's batch is cut down to it.
const GPU_TOKENS: usize = 1 << 15;
const CPU_TOKENS: usize = 24;

#[test]
fn cpu_contenders_pass() {
    pass(&*cpu(), random_problems(CPU_TOKENS, &[1, 3, 8]));
    pass(&*cpu(), suite_problems(&[MlaSuite::Smoke], 1 << 10));
}

#[test]
fn gpu_contenders_pass_random_shapes() {
    if let Some(device) = gpu() {
        let heads = [1, 8, 16, 32, 64, 96, 128];
        let most = if device.info().emulated { 9 } else { 12 };
        pass(&*device, random_problems(1 << most, &heads));
    }
}

#[test]
fn gpu_contenders_pass_suites() {
    if let Some(device) = gpu() {
        let suites: Vec<MlaSuite> = MlaSuite::all().collect();
        let most = if device.info().emulated {
            1 << 10
        } else {
            GPU_TOKENS
        };
        pass(&*device, suite_problems(&suites, most));
    }
}

fn pass(device: &dyn Device, problems: Vec<MlaDecodeProblem>) {
    paged::pass(device, mla_contenders::contenders, &problems, |problem| {
        format!("{:?} {}", problem.shape, problem.dtype())
    });
}

fn random_problems(most_tokens: usize, heads: &[usize]) -> Vec<MlaDecodeProblem> {
    Draw::all(SEED, RANDOM_SHAPES)
        .map(|draw| drawn::latent(&draw, most_tokens, heads))
        .collect()
}

fn suite_problems(suites: &[MlaSuite], most: usize) -> Vec<MlaDecodeProblem> {
    paged::suite_problems(
        suites.iter().flat_map(|suite| suite.workloads()),
        most,
        |shape| &mut shape.lengths,
        |shape, dtype, workload| MlaDecodeProblem::new(shape, dtype, workload.clone()),
    )
}
