//! Every fault that leaves the process alive is caught by the gate, by its own name.

use std::ops::Range;

use contender::{
    Bound, Buffer, Contender, ContenderError, Cost, Family, Kind, Problem, Slice, Statement, Stream,
};
use device::DeviceKind;
use faults::{Fault, FaultyContender, Scaled};
use gate::{BufferSet, Errors, Failure, FailureKind, Gate, GateOptions};
use numeric::DType;
use tensor::{Fill, Inputs};

const SEED: u64 = 7;

fn examine(fault: Fault, with_reference: bool) -> Result<Vec<Errors>, Failure> {
    examine_problem(Scaled::new(300, 33), fault, with_reference)
}

fn examine_problem(
    problem: Scaled,
    fault: Fault,
    with_reference: bool,
) -> Result<Vec<Errors>, Failure> {
    let device = device::open(DeviceKind::Cpu).unwrap();
    let mut gate = Gate::new(&problem, GateOptions::new(SEED)).unwrap();
    let set = BufferSet::new(&*device, problem.tensors(), SEED).unwrap();
    if with_reference {
        run(&problem, &gate, &set, Fault::None).expect("the reference is right");
        gate.adopt_reference(&set).unwrap();
    }
    run(&problem, &gate, &set, fault)
}

fn run(
    problem: &Scaled,
    gate: &Gate,
    set: &BufferSet,
    fault: Fault,
) -> Result<Vec<Errors>, Failure> {
    let contender = FaultyContender::new("test", Kind::Own, fault);
    let info = set.device().info().clone();
    let mut bound = contender.bind(problem, set.buffers(), &info)?;
    gate.examine(set, &mut *bound)
}

#[test]
fn an_honest_contender_passes_with_its_errors() {
    for with_reference in [false, true] {
        let errors = examine(Fault::None, with_reference).unwrap();
        assert_eq!(errors.len(), 1);
        assert_eq!(
            (errors[0].tensor.as_str(), errors[0].sampled),
            ("y", 64 * 33)
        );
        assert!(errors[0].max_abs > 0.0 && errors[0].max_abs <= errors[0].budget.max_abs);
        assert!(errors[0].budget.max_abs < 1e-5);
    }
}

/// The failure names the element and has the errors of the whole sample.
fn assert_inaccurate(failure: &Failure, index: usize) {
    assert!(
        failure.to_string().starts_with(&format!(
            "'y'[{}, {}] (element {index}, unit {}) is ",
            index / 33,
            index % 33,
            index / 33
        )),
        "{failure}"
    );
    let errors = &failure.errors()[0];
    assert!(errors.max_abs > 0.009 && errors.max_abs > errors.budget.max_abs);
}

/// Padding may stay unwritten; errors elsewhere are still found.
#[test]
fn padding_of_an_output_is_not_looked_at() {
    for with_reference in [false, true] {
        let padded = || Scaled::new(300, 33).with_padding();
        examine_problem(padded(), Fault::UnwrittenTail, with_reference).unwrap();
        let smaller = Scaled::new(299, 33);
        let failure = examine_problem(smaller, Fault::UnwrittenTail, with_reference).unwrap_err();
        assert!(matches!(failure, Failure::Unwritten { .. }), "{failure}");
        let failure = examine_problem(padded(), Fault::InputMutation, with_reference).unwrap_err();
        assert!(matches!(failure, Failure::InputChanged { .. }), "{failure}");
    }
}

#[test]
fn each_fault_is_named() {
    let failure = |fault| examine(fault, false).unwrap_err();
    assert_inaccurate(&failure(Fault::WrongResult), 300 * 33 - 1);
    assert!(matches!(
        failure(Fault::NotANumber),
        Failure::NonFinite { count: 1, .. }
    ));
    let tail = failure(Fault::UnwrittenTail);
    assert!(matches!(tail, Failure::Unwritten { first, count: 33 } if first.index == 299 * 33));
    assert!(matches!(
        failure(Fault::OutOfBounds),
        Failure::OutOfBounds {
            tensor: "y",
            side: "after",
            ..
        }
    ));
    assert!(matches!(
        failure(Fault::InputMutation),
        Failure::InputChanged { tensor: "x" }
    ));
    assert!(matches!(failure(Fault::CachedOutput), Failure::Stale));
    // On a busy machine the watcher may miss the late write; the check after it does not.
    let late = failure(Fault::OtherStream);
    assert_eq!(late.kind(), FailureKind::Wrong, "{late}");
    assert!(matches!(
        failure(Fault::AllocationFailure),
        Failure::Contender(_)
    ));
}

/// Where an honest implementation may be as coarse as bf16, as one that rounds queries is where few keys average that.
struct CoarseStart(Scaled);

impl CoarseStart {
    const ROWS: Range<usize> = 1..512;
}

impl Problem for CoarseStart {
    fn statement(&self) -> &Statement {
        self.0.statement()
    }

    fn cost(&self) -> Cost {
        self.0.cost()
    }

    fn units(&self) -> usize {
        self.0.units()
    }

    fn oracle(&self, inputs: &Inputs, unit: usize) -> Vec<Slice> {
        self.0.oracle(inputs, unit)
    }

    fn honest(&self, inputs: &Inputs, unit: usize) -> Vec<Slice> {
        let mut slices = self.0.honest(inputs, unit);
        if Self::ROWS.contains(&unit) {
            let values = slices.iter_mut().flat_map(|slice| &mut slice.values);
            values.for_each(|value| *value = DType::Bf16.round(*value));
        }
        slices
    }
}

/// The sample has none of the coarse rows, so the tolerance of their tile is learned when it differs from the
/// reference, and is that tile's alone.
#[test]
fn a_tile_may_be_as_coarse_as_is_honest_there() {
    let problem = CoarseStart(Scaled::new(1 << 16, 33));
    let device = device::open(DeviceKind::Cpu).unwrap();
    let set = BufferSet::new(&*device, problem.tensors(), SEED).unwrap();
    let options = GateOptions {
        entropy: 0,
        ..GateOptions::new(SEED)
    };
    let mut gate = Gate::new(&problem, options).unwrap();
    let errors = run(&problem.0, &gate, &set, Fault::None).unwrap();
    assert!(
        errors[0].budget.max_abs < 1e-5,
        "a sample with a coarse row"
    );
    gate.adopt_reference(&set).unwrap();
    let round = |rows: Range<usize>| {
        let elements = rows.start * 33..rows.end * 33;
        let address = set.buffers()[Scaled::Y].address + 4 * elements.start;
        let mut bytes = vec![0; 4 * elements.len()];
        device.read(address, &mut bytes).unwrap();
        let values = DType::F32.decode(&bytes).into_iter();
        let rounded = values.flat_map(|value| (DType::Bf16.round(value) as f32).to_ne_bytes());
        device.write(address, &rounded.collect::<Vec<_>>()).unwrap();
    };
    round(CoarseStart::ROWS);
    gate.check(&set).unwrap();
    round(4096..4608);
    let failure = gate.check(&set).unwrap_err();
    assert!(
        matches!(failure, Failure::WrongAgainstReference { .. }),
        "{failure}"
    );
}

const OTHER_WEIGHTS: &str = "other weights";

/// Its weights are the same for every seed, but not for every kind of inputs.
struct FixedWeights(Scaled, Statement);

impl FixedWeights {
    fn weights(of: impl Fn(usize) -> f32) -> Fill {
        Fill::Bytes((0..33).flat_map(|i| of(i).to_ne_bytes()).collect())
    }

    fn new() -> Self {
        let problem = Scaled::new(300, 33);
        let mut statement = problem.statement().clone();
        let weights = &mut statement.tensors[Scaled::W];
        *weights = weights.clone().filled(Self::weights(|i| i as f32));
        Self(problem, statement)
    }
}

impl Problem for FixedWeights {
    fn statement(&self) -> &Statement {
        &self.1
    }

    fn cost(&self) -> Cost {
        self.0.cost()
    }

    fn units(&self) -> usize {
        self.0.units()
    }

    fn oracle(&self, inputs: &Inputs, unit: usize) -> Vec<Slice> {
        self.0.oracle(inputs, unit)
    }

    fn honest(&self, inputs: &Inputs, unit: usize) -> Vec<Slice> {
        self.0.honest(inputs, unit)
    }

    fn families(&self) -> Vec<Family> {
        let name = self.1.tensors[Scaled::W].name;
        let others = Self::weights(|i| 50.0 - i as f32);
        vec![self.1.family(OTHER_WEIGHTS, vec![(name, others)])]
    }
}

/// Keeps the weights that it has read when it was bound, as a library that lays them out for itself.
struct KeepsWeights {
    buffers: Vec<Buffer>,
    kept: Vec<f32>,
    rereads: bool,
}

impl KeepsWeights {
    fn values(&self, tensor: usize) -> Vec<f32> {
        let Buffer { address, bytes } = self.buffers[tensor];
        // SAFETY: a live tensor of floats on the CPU.
        unsafe { std::slice::from_raw_parts(address as *const f32, bytes / 4) }.to_vec()
    }
}

impl Bound for KeepsWeights {
    fn enqueue(&mut self, _: Stream) -> Result<(), ContenderError> {
        let x = self.values(Scaled::X);
        let weights = self.kept.iter().cycle();
        let out = self.buffers[Scaled::Y].address as *mut f32;
        for (place, (x, weight)) in x.iter().zip(weights).enumerate() {
            // SAFETY: as many elements as x has.
            unsafe { out.add(place).write(x * weight) };
        }
        Ok(())
    }

    fn reread(&mut self) -> Result<(), ContenderError> {
        if self.rereads {
            self.kept = self.values(Scaled::W);
        }
        Ok(())
    }
}

#[test]
fn inputs_that_binding_may_read_are_read_again() {
    let device = device::open(DeviceKind::Cpu).unwrap();
    let problem = FixedWeights::new();
    let gate = Gate::new(&problem, GateOptions::new(SEED)).unwrap();
    let set = BufferSet::new(&*device, problem.tensors(), SEED).unwrap();
    let examined = |rereads| {
        let mut bound = KeepsWeights {
            buffers: set.buffers().to_vec(),
            kept: Vec::new(),
            rereads,
        };
        bound.kept = bound.values(Scaled::W);
        gate.examine(&set, &mut bound)
    };
    examined(true).unwrap();
    let failure = examined(false).unwrap_err();
    assert!(failure.to_string().contains(OTHER_WEIGHTS), "{failure}");
    // The set holds the usual inputs again.
    examined(true).unwrap();
}

#[test]
fn all_but_a_refusal_are_wrong() {
    assert_eq!(
        examine(Fault::WrongResult, true).unwrap_err().kind(),
        FailureKind::Wrong
    );
    assert_eq!(
        examine(Fault::OtherStream, true).unwrap_err().kind(),
        FailureKind::Wrong
    );
    assert_eq!(
        examine(Fault::AllocationFailure, true).unwrap_err().kind(),
        FailureKind::Error
    );
}

/// Only the full reference sees a wrong element in a unit outside the sample.
#[test]
fn the_full_reference_sees_what_the_sample_misses() {
    let device = device::open(DeviceKind::Cpu).unwrap();
    let problem = Scaled::new(3000, 5);
    let options = GateOptions {
        units: 2,
        units_second: 2,
        ..GateOptions::new(SEED)
    };
    let mut gate = Gate::new(&problem, options).unwrap();
    let set = BufferSet::new(&*device, problem.tensors(), SEED).unwrap();
    run(&problem, &gate, &set, Fault::None).unwrap();
    let damage = |set: &BufferSet| {
        let middle = set.buffers()[Scaled::Y].address + 4 * 7001;
        device.write(middle, &0.75f32.to_le_bytes()).unwrap();
    };
    damage(&set);
    gate.check(&set)
        .expect("the sample holds only the first and the last row");
    gate.check_again(&set).expect("it does so in a race");
    run(&problem, &gate, &set, Fault::None).unwrap();
    gate.adopt_reference(&set).unwrap();
    damage(&set);
    gate.check_again(&set)
        .expect_err("a race compares with the reference too");
    let failure = gate.check(&set).unwrap_err();
    assert!(matches!(
        failure,
        Failure::WrongAgainstReference {
            ref first,
            count: 1,
            ..
        } if first.index == 7001 && first.expected.is_some()
    ));
}

/// A reference that is too slow for the whole computes the pieces with sampled units; what it says
/// is checked first.
#[test]
fn pieces_of_a_reference_see_what_the_sample_misses() {
    let device = device::open(DeviceKind::Cpu).unwrap();
    let problem = Scaled::new(1000, 5);
    let options = GateOptions {
        units: 2,
        units_second: 2,
        ..GateOptions::new(SEED)
    };
    let mut gate = Gate::new(&problem, options).unwrap();
    assert_eq!(gate.coverage().to_string(), "sample");
    let set = BufferSet::new(&*device, problem.tensors(), SEED).unwrap();
    let info = device.info().clone();
    let bind_to = |fault, gate: &mut Gate, set: &BufferSet| {
        gate.adopt_pieces(set, &problem.pieces(), &mut |piece, buffers| {
            let piece: &dyn std::any::Any = piece;
            let piece = piece.downcast_ref().expect("a piece is of the same kind");
            FaultyContender::new("test", Kind::Reference, fault).bind(piece, buffers, &info)
        })
    };
    let wrong = bind_to(Fault::WrongResult, &mut gate, &set).unwrap_err();
    assert!(wrong.to_string().contains("the oracle says"), "{wrong}");
    bind_to(Fault::None, &mut gate, &set).unwrap();
    assert_eq!(gate.coverage().to_string(), "slices 2 of 10");
    run(&problem, &gate, &set, Fault::None).unwrap();
    let middle = set.buffers()[Scaled::Y].address + 4 * 251;
    device.write(middle, &0.75f32.to_le_bytes()).unwrap();
    let failure = gate.check(&set).unwrap_err();
    let found =
        matches!(&failure, Failure::WrongAgainstReference { first, .. } if first.index == 251);
    assert!(found, "{failure}");
}

/// A first row that is four thousand times as large as the others does not excuse rounding them to
/// bf16: neither in the sample nor, where that holds only the two ends, against the full reference.
#[test]
fn faint_rows_are_held_to_their_own_values() {
    let faint = || Scaled::new(300, 33).with_faint_tail();
    for with_reference in [false, true] {
        examine_problem(faint(), Fault::None, with_reference).unwrap();
        let failure =
            examine_problem(faint(), Fault::LowPrecisionTail, with_reference).unwrap_err();
        assert!(matches!(failure, Failure::Inaccurate { .. }), "{failure}");
    }
    let device = device::open(DeviceKind::Cpu).unwrap();
    let problem = Scaled::new(3000, 33).with_faint_tail();
    let options = GateOptions {
        units: 2,
        units_second: 2,
        ..GateOptions::new(SEED)
    };
    let mut gate = Gate::new(&problem, options).unwrap();
    let set = BufferSet::new(&*device, problem.tensors(), SEED).unwrap();
    run(&problem, &gate, &set, Fault::None).unwrap();
    gate.adopt_reference(&set).unwrap();
    let (row, bytes) = (4 * 33, 1000 * 33 * 4);
    let middle = set.buffers()[Scaled::Y].address + 1000 * row;
    let mut values = vec![0; bytes];
    device.read(middle, &mut values).unwrap();
    for value in values.chunks_exact_mut(4) {
        value[..2].fill(0);
    }
    device.write(middle, &values).unwrap();
    let failure = gate.check(&set).unwrap_err();
    assert!(
        matches!(failure, Failure::TileAgainstReference { .. }),
        "{failure}"
    );
}

#[test]
fn what_a_few_units_refuse_more_units_refuse_too() {
    let device = device::open(DeviceKind::Cpu).unwrap();
    let problem = Scaled::new(300, 33);
    let gate = Gate::new(&problem, GateOptions::new(SEED).again()).unwrap();
    let set = BufferSet::new(&*device, problem.tensors(), SEED).unwrap();
    let failure = run(&problem, &gate, &set, Fault::LowPrecisionTail).unwrap_err();
    assert!(matches!(failure, Failure::Inaccurate { .. }), "{failure}");
    let errors = run(&problem, &gate, &set, Fault::None).unwrap();
    assert!(errors[0].max_abs <= errors[0].budget.max_abs);
}
