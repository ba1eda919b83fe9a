//! Latent-attention decode passes the gate on every suite and on random shapes: on the GPU with our
//! kernels, on the CPU with the CPU contenders.

mod decode_lengths;
mod examine_all;
#[path = "../mla_decode/mod.rs"]
mod mla_decode;

use contender::{DeviceKind, Kind};
use device::Device;
use numeric::{bits, index_below, DType};
use workloads::{MlaDecodeProblem, MlaShape, MlaSuite};

use examine_all::{gpu, Rules};

const SEED: u64 = 20;
const RULES: Rules = Rules {
    seed: SEED,
    units: 6,
    units_second: 2,
    adopts_reference: true,
    // The portable kernel is a contender only where 'ours' is another.
    may_decline: |identity| identity.kind == Kind::Baseline || identity.name == "ours_portable",
};

const RANDOM_SHAPES: u64 = 200;

/// The most cached tokens of a problem: a suite's batch is cut down to it.
const GPU_TOKENS: usize = 1 << 15;
const CPU_TOKENS: usize = 24;

#[test]
fn cpu_contenders_pass() {
    let device = device::open(DeviceKind::Cpu).expect("the CPU is always there");
    pass(&*device, &random_problems(CPU_TOKENS, &[1, 3, 8]));
    pass(&*device, &suite_problems(&[MlaSuite::Smoke], 1 << 10));
}

#[test]
fn gpu_contenders_pass_random_shapes() {
    if let Some(device) = gpu() {
        pass(
            &*device,
            &random_problems(1 << 12, &[1, 8, 16, 32, 64, 96, 128]),
        );
    }
}

#[test]
fn gpu_contenders_pass_suites() {
    if let Some(device) = gpu() {
        let suites: Vec<MlaSuite> = MlaSuite::all().collect();
        pass(&*device, &suite_problems(&suites, GPU_TOKENS));
    }
}

fn pass(device: &dyn Device, problems: &[MlaDecodeProblem]) {
    let contenders = mla_decode::contenders(device.info().kind);
    examine_all::pass(device, &contenders, problems, &RULES, |problem| {
        format!("{:?} {}", problem.shape, problem.dtype)
    });
}

/// Seeded shapes of all kinds: empty sequences, single tokens, whole and partial last pages.
fn random_problems(most_tokens: usize, heads: &[usize]) -> Vec<MlaDecodeProblem> {
    (0..RANDOM_SHAPES)
        .map(|case| {
            let draw = |stream: u32, below: usize| {
                index_below(bits(SEED, stream, case), below as u32) as usize
            };
            let page_size = [1, 16, 32, 64, 128][draw(0, 5)];
            let q_len = [1, 1, 1, 2, 3, 4][draw(3, 6)];
            let batch = 1 + draw(4, 9);
            let longest = 1 + draw(5, most_tokens / batch);
            let lengths = decode_lengths::random(&draw, batch, longest, q_len, page_size);
            let shape = MlaShape {
                lengths,
                q_len,
                heads: heads[draw(6, heads.len())],
                page_size,
            };
            let workload = MlaSuite::custom(&shape);
            MlaDecodeProblem::new(shape, [DType::Bf16, DType::F16][draw(8, 2)], workload)
        })
        .collect()
}

/// Every workload of the suites. A batch of more tokens than `most` loses sequences from its
/// front, a single sequence tokens.
fn suite_problems(suites: &[MlaSuite], most: usize) -> Vec<MlaDecodeProblem> {
    let mut problems = Vec::new();
    for (shape, workload) in suites.iter().flat_map(|suite| suite.workloads()) {
        let mut shape = shape;
        decode_lengths::cut(&mut shape.lengths, most);
        for dtype in [DType::Bf16, DType::F16] {
            problems.push(MlaDecodeProblem::new(
                shape.clone(),
                dtype,
                workload.clone(),
            ));
        }
    }
    problems
}
