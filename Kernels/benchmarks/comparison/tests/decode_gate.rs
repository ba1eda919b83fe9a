//! Decode attention passes the gate on every suite and on random shapes: on the GPU with our
//! kernels, on the CPU with the CPU contenders.

#[path = "../decode/mod.rs"]
mod decode;
mod decode_lengths;
mod examine_all;

use contender::{DeviceKind, Kind};
use device::Device;
use numeric::{bits, index_below, DType};
use workloads::{DecodeProblem, DecodeShape, DecodeSuite, KvLayout, KvType};

use examine_all::{gpu, Rules};

const SEED: u64 = 20;
const RULES: Rules = Rules {
    seed: SEED,
    units: 6,
    units_second: 2,
    adopts_reference: true,
    may_decline: |identity| identity.kind == Kind::Baseline,
};

const RANDOM_SHAPES: u64 = 200;

/// The most cached tokens of a problem: a suite's batch is cut down to it.
const GPU_TOKENS: usize = 1 << 17;
const CPU_TOKENS: usize = 120;

#[test]
fn cpu_contenders_pass() {
    let device = device::open(DeviceKind::Cpu).expect("the CPU is always there");
    pass(&*device, &random_problems(CPU_TOKENS));
    pass(&*device, &suite_problems(&[DecodeSuite::Smoke], 1 << 11));
}

#[test]
fn gpu_contenders_pass_random_shapes() {
    if let Some(device) = gpu() {
        pass(&*device, &random_problems(1 << 14));
    }
}

#[test]
fn gpu_contenders_pass_suites() {
    if let Some(device) = gpu() {
        let suites: Vec<DecodeSuite> = DecodeSuite::all().collect();
        pass(&*device, &suite_problems(&suites, GPU_TOKENS));
    }
}

fn pass(device: &dyn Device, problems: &[DecodeProblem]) {
    let contenders = decode::contenders(device.info().kind);
    examine_all::pass(device, &contenders, problems, &RULES, |problem| {
        format!("{:?} {}", problem.shape, problem.dtype)
    });
}

/// Seeded shapes of all kinds: empty sequences, single tokens, whole and partial last pages.
fn random_problems(most_tokens: usize) -> Vec<DecodeProblem> {
    (0..RANDOM_SHAPES)
        .map(|case| {
            let draw = |stream: u32, below: usize| {
                index_below(bits(SEED, stream, case), below as u32) as usize
            };
            let page_size = [1, 16, 32, 64, 128][draw(0, 5)];
            let kv_heads = [1, 2, 3, 4, 8][draw(1, 5)];
            let group = [1, 2, 3, 4, 5, 7, 8, 16][draw(2, 8)];
            let q_len = [1, 1, 1, 2, 4, 8][draw(3, 6)];
            let batch = 1 + draw(4, 9);
            let longest = 1 + draw(5, most_tokens / batch);
            let lengths = decode_lengths::random(&draw, batch, longest, q_len, page_size);
            let shape = DecodeShape {
                lengths,
                q_len,
                heads: kv_heads * group,
                kv_heads,
                head_dim: [64, 128][draw(6, 2)],
                page_size,
                layout: [KvLayout::Nhd, KvLayout::Hnd][draw(7, 2)],
                kv_type: [KvType::Same, KvType::Same, KvType::Fp8][draw(9, 3)],
            };
            let workload = DecodeSuite::custom(&shape);
            DecodeProblem::new(shape, [DType::Bf16, DType::F16][draw(8, 2)], workload)
        })
        .collect()
}

/// Every workload of the suites. A batch of more tokens than `most` loses sequences from its
/// front, a single sequence tokens.
fn suite_problems(suites: &[DecodeSuite], most: usize) -> Vec<DecodeProblem> {
    let mut problems = Vec::new();
    for (shape, workload) in suites.iter().flat_map(|suite| suite.workloads()) {
        let mut shape = shape;
        decode_lengths::cut(&mut shape.lengths, most);
        for dtype in [DType::Bf16, DType::F16] {
            problems.push(DecodeProblem::new(shape.clone(), dtype, workload.clone()));
        }
    }
    problems
}
