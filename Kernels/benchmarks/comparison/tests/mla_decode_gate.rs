//! Latent-attention decode passes the gate on every suite and on random shapes: on the GPU with our
//! kernels, on the CPU with the CPU contenders.

#[path = "../mla_decode/mod.rs"]
mod mla_decode;

use contender::{Contender, DeviceKind, Kind, Problem, Support};
use device::{Device, DeviceError};
use gate::{BufferSet, Gate, GateOptions};
use numeric::{bits, index_below, DType};
use workloads::{MlaDecodeProblem, MlaShape, MlaSuite};

const SEED: u64 = 20;
const RANDOM_SHAPES: u64 = 200;

/// The most cached tokens of a problem: a suite's batch is cut down to it.
const GPU_TOKENS: usize = 1 << 15;
const CPU_TOKENS: usize = 24;

#[test]
fn cpu_contenders_pass() {
    let device = device::open(DeviceKind::Cpu).expect("the CPU is always there");
    pass(&*device, random_problems(CPU_TOKENS, &[1, 3, 8]));
    pass(&*device, suite_problems(&[MlaSuite::Smoke], 1 << 10));
}

#[test]
fn gpu_contenders_pass_random_shapes() {
    if let Some(device) = gpu() {
        pass(
            &*device,
            random_problems(1 << 12, &[1, 8, 16, 32, 64, 96, 128]),
        );
    }
}

#[test]
fn gpu_contenders_pass_suites() {
    if let Some(device) = gpu() {
        let suites: Vec<MlaSuite> = MlaSuite::all().collect();
        pass(&*device, suite_problems(&suites, GPU_TOKENS));
    }
}

fn gpu() -> Option<Box<dyn Device>> {
    match device::open(DeviceKind::Cuda) {
        Ok(device) => Some(device),
        Err(error @ (DeviceError::NotBuilt | DeviceError::Unavailable { .. })) => {
            println!("SKIPPED: {error}");
            None
        }
        Err(error) => panic!("the GPU cannot be opened: {error}"),
    }
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
            let lengths = (0..batch)
                .map(|sequence| match draw(10 + sequence as u32, 8) {
                    0 => 0,
                    // The caches of a step hold its new tokens; 1 where that is one.
                    1 => q_len,
                    2 => longest.next_multiple_of(page_size).max(q_len),
                    3 => longest.next_multiple_of(page_size).max(q_len) + 1,
                    _ => draw(40 + sequence as u32, longest).max(q_len),
                })
                .collect();
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
        while shape.batch() > 1 && shape.lengths.iter().sum::<usize>() > most {
            shape.lengths.remove(0);
        }
        shape.lengths.iter_mut().for_each(|n| *n = (*n).min(most));
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

/// Panics with all failures, so that one run shows the pattern.
fn pass(device: &dyn Device, problems: Vec<MlaDecodeProblem>) {
    let contenders = mla_decode::contenders(device.info().kind);
    assert!(!contenders.is_empty());
    let (mut failures, mut passed) = (Vec::new(), 0);
    for problem in &problems {
        match examine(device, &contenders, problem) {
            Ok(count) => passed += count,
            Err(failure) => failures.push(format!("{:?}: {failure}", problem.shape)),
        }
    }
    println!(
        "{passed} examinations of {} problems passed",
        problems.len()
    );
    assert!(
        failures.is_empty(),
        "{} failures:\n{}",
        failures.len(),
        failures.join("\n")
    );
}

/// The reference goes first and is then what every element is compared with. A baseline may say
/// that it does not support a shape; ours may not.
fn examine(
    device: &dyn Device,
    contenders: &[Box<dyn Contender<MlaDecodeProblem>>],
    problem: &MlaDecodeProblem,
) -> Result<usize, String> {
    let options = GateOptions {
        units: 6,
        units_second: 2,
        ..GateOptions::new(SEED)
    };
    let mut gate = Gate::new(problem, options).map_err(|failure| failure.to_string())?;
    let mut set =
        BufferSet::new(device, problem.tensors(), SEED).map_err(|error| error.to_string())?;
    let mut order: Vec<_> = contenders.iter().collect();
    order.sort_by_key(|contender| contender.identity().kind != Kind::Reference);
    let mut passed = 0;
    for contender in order {
        let identity = contender.identity();
        let name = &identity.name;
        match contender.supports(problem, device.info()) {
            Support::Yes => {}
            Support::No(_) if identity.kind == Kind::Baseline => continue,
            Support::No(reason) => return Err(format!("{name} does not support it: {reason}")),
        }
        let mut bound = contender
            .bind(problem, set.buffers(), device.info())
            .map_err(|error| format!("{name}: {error}"))?;
        gate.examine(&mut set, &mut *bound)
            .map_err(|failure| format!("{name} {failure}"))?;
        if identity.kind == Kind::Reference {
            gate.adopt_reference(&set)
                .map_err(|failure| format!("{name} {failure}"))?;
        }
        passed += 1;
    }
    Ok(passed)
}
