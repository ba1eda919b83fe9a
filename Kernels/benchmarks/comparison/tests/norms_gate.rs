//! Every row operation, type and kind of shape passes the gate: on the GPU with our kernels and the
//! baselines that support it, on the CPU with the CPU contenders.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use contender::{Contender, DeviceKind, Kind, Problem, Support};
use device::Device;
use drawn::{Draw, NormLimits};
use examine::{bind_and_examine, gpu};
use gate::{BufferSet, Gate, GateOptions};
use numeric::DType;
use workloads::{NormOp, NormProblem, NormSuite, NormTypes, RowShape};

const SEED: u64 = 20;

/// One random problem in this many is examined whole, like all problems of suites: the order of
/// writes is watched, and libraries take part, some of which take long to build a plan. Ten
/// operations take turns, so that each gets its share.
const WHOLE_EVERY: usize = 9;

/// Activation and weight types that suites are examined with.
const TYPES: [(DType, DType); 4] = [
    (DType::Bf16, DType::Bf16),
    (DType::Bf16, DType::F32),
    (DType::F16, DType::F32),
    (DType::F32, DType::F32),
];

/// How large the shapes of a device may be.
struct Scale {
    /// Random shapes per operation.
    shapes: u64,
    limits: NormLimits,
}

const GPU: Scale = Scale {
    shapes: 200,
    limits: NormLimits {
        elements: 1 << 25,
        columns: 262_144,
        rows: 1 << 20,
    },
};
const CPU: Scale = Scale {
    shapes: 25,
    limits: NormLimits {
        elements: 1 << 15,
        columns: 1 << 14,
        rows: 1 << 12,
    },
};

#[test]
fn cpu_contenders_pass() {
    pass(DeviceKind::Cpu, random_problems(&CPU), WHOLE_EVERY);
    let suite = suite_problems(&[NormSuite::Smoke], &CPU);
    let passed = pass(DeviceKind::Cpu, suite, 1);
    // The lock has it for this CPU alone.
    if cfg!(target_arch = "x86_64") {
        assert!(passed.contains_key("onednn"), "{passed:?}");
    }
}

#[test]
fn gpu_contenders_pass_random_shapes() {
    if gpu().is_some() {
        pass(DeviceKind::Cuda, random_problems(&GPU), WHOLE_EVERY);
    }
}

#[test]
fn gpu_contenders_pass_suites() {
    if gpu().is_some() {
        let suites = [NormSuite::Smoke, NormSuite::Decode, NormSuite::Dsv3];
        let passed = pass(DeviceKind::Cuda, suite_problems(&suites, &GPU), 1);
        for contender in norms_contenders::contenders(DeviceKind::Cuda) {
            let name = &contender.identity().name;
            assert!(
                passed.contains_key(name),
                "{name} supports no problem of the suites"
            );
        }
    }
}

/// Past 2^31 elements, where 32-bit offsets would wrap around. Only our kernels: libraries sum that
/// many rows with errors of their own.
#[test]
fn gpu_contenders_pass_beyond_32_bits() {
    if gpu().is_some() {
        let shapes = [(540_000, 4096), (2_200_000, 1001)];
        let problems = NormOp::all().flat_map(|op| {
            shapes.map(|(rows, columns)| problem(op, rows, columns, DType::Bf16, DType::F32))
        });
        pass(DeviceKind::Cuda, problems.collect(), usize::MAX);
    }
}

fn problem(
    op: NormOp,
    rows: usize,
    columns: usize,
    activation: DType,
    weight: DType,
) -> NormProblem {
    let (shape, workload) = NormSuite::custom(RowShape { rows, columns });
    NormProblem::new(op, shape, NormTypes { activation, weight }, workload)
}

/// Different shapes for every operation.
fn random_problems(scale: &Scale) -> Vec<NormProblem> {
    Draw::all(SEED, scale.shapes * NormOp::all().count() as u64)
        .map(|draw| drawn::norm(&draw, &scale.limits))
        .collect()
}

fn suite_problems(suites: &[NormSuite], scale: &Scale) -> Vec<NormProblem> {
    let mut problems = Vec::new();
    for op in NormOp::all() {
        for (shape, workload) in suites.iter().flat_map(|suite| suite.workloads(op)) {
            if shape.rows * shape.columns > 32 * scale.limits.elements {
                continue;
            }
            for (activation, weight) in TYPES {
                let types = NormTypes { activation, weight };
                problems.push(NormProblem::new(op, shape, types, workload.clone()));
            }
        }
    }
    problems
}

/// A worker's findings.
#[derive(Default)]
struct Findings {
    /// How many problems each contender passed.
    passed: BTreeMap<String, usize>,
    failures: Vec<String>,
}

/// How many problems each contender passed. Panics with all failures, so that one run shows the pattern.
fn pass(
    kind: DeviceKind,
    problems: Vec<NormProblem>,
    whole_every: usize,
) -> BTreeMap<String, usize> {
    let next = AtomicUsize::new(0);
    let worker = || work(kind, &problems, whole_every, &next);
    let all = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..workers(kind)).map(|_| scope.spawn(worker)).collect();
        let mut all = Findings::default();
        for thread in threads {
            let found = thread
                .join()
                .expect("a worker reports failures and never panics");
            all.failures.extend(found.failures);
            for (name, count) in found.passed {
                *all.passed.entry(name).or_default() += count;
            }
        }
        all
    });
    println!("{} problems; passed: {:?}", problems.len(), all.passed);
    assert!(
        all.failures.is_empty(),
        "{} failures:\n{}",
        all.failures.len(),
        all.failures.join("\n")
    );
    all.passed
}

/// With a GPU most of the time goes into the oracle, which runs on the CPU; without one the
/// contenders are threaded themselves.
fn workers(kind: DeviceKind) -> usize {
    const MOST: usize = 12;
    match kind {
        DeviceKind::Cpu | DeviceKind::Ptx => 1,
        DeviceKind::Cuda => {
            std::thread::available_parallelism().map_or(1, |count| count.get().min(MOST))
        }
    }
}

/// Examines problems until none is left, with its own device and contenders.
fn work(
    kind: DeviceKind,
    problems: &[NormProblem],
    whole_every: usize,
    next: &AtomicUsize,
) -> Findings {
    let opening = turn(kind);
    let device = device::open(kind).expect("it was there a moment ago");
    let contenders = norms_contenders::contenders(kind);
    drop(opening);
    assert!(!contenders.is_empty());
    let mut found = Findings::default();
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        let Some(problem) = problems.get(number) else {
            let _closing = turn(kind);
            drop((contenders, device));
            return found;
        };
        let whole = number.is_multiple_of(whole_every);
        if let Err(failure) = examine(&*device, &contenders, problem, whole, &mut found.passed) {
            let name = format!("{} {} {}", problem.op, problem.shape, problem.dtype());
            found.failures.push(format!("{name}: {failure}"));
        }
    }
}

fn is_library(contender: &dyn Contender<NormProblem>) -> bool {
    let identity = contender.identity();
    identity.kind == Kind::Baseline && identity.name != "loop"
}

/// This worker has the GPU to itself: allocating and freeing wait for all streams, and a held
/// stream waits for its holder.
fn turn(kind: DeviceKind) -> Option<MutexGuard<'static, ()>> {
    static TURN: Mutex<()> = Mutex::new(());
    match kind {
        DeviceKind::Cpu | DeviceKind::Ptx => None,
        DeviceKind::Cuda => Some(TURN.lock().unwrap_or_else(PoisonError::into_inner)),
    }
}

fn examine(
    device: &dyn Device,
    contenders: &[Box<dyn Contender<NormProblem>>],
    problem: &NormProblem,
    whole: bool,
    passed: &mut BTreeMap<String, usize>,
) -> Result<(), String> {
    let options = GateOptions {
        units: 12,
        units_second: 4,
        ..GateOptions::new(SEED)
    };
    let gate = Gate::new(problem, options).map_err(|failure| failure.to_string())?;
    let _turn = turn(device.info().kind);
    let set = BufferSet::new(device, problem.tensors(), SEED).map_err(|error| error.to_string())?;
    for contender in contenders {
        let name = &contender.identity().name;
        if !whole && is_library(&**contender) {
            continue;
        }
        match contender.supports(problem, device.info()) {
            Support::Yes => {}
            // Libraries may leave problems out; our contenders must support everything.
            Support::No(_) if is_library(&**contender) => continue,
            Support::No(reason) => return Err(format!("{name} does not support it: {reason}")),
        }
        bind_and_examine(&gate, &set, &**contender, problem, whole)?;
        *passed.entry(name.clone()).or_default() += 1;
    }
    Ok(())
}
