//! How gate tests examine their problems, whatever these are.

use std::collections::BTreeMap;

use contender::{Contender, DeviceKind, Identity, Kind, Problem, Support};
use device::{Device, DeviceError};
use gate::{BufferSet, Gate, GateOptions};

pub mod paged;

/// On the CPU, late writes are watched for 20 ms, for one problem in this many. If operations take
/// turns, each gets its share: their counts are not multiples of it.
const CPU_WATCHED_EVERY: usize = 7;

/// How the problems of a test are examined.
pub struct Rules {
    /// Seed of the inputs and of the sampled units.
    pub seed: u64,
    /// Units that the gate samples in its two runs.
    pub units: usize,
    pub units_second: usize,
    /// Whether every element is also compared with the reference's.
    pub adopts_reference: bool,
    /// Contenders that may reject a problem as unsupported.
    pub may_decline: fn(&Identity) -> bool,
}

pub fn cpu() -> Box<dyn Device> {
    device::open(DeviceKind::Cpu).expect("the CPU is always there")
}

pub fn gpu() -> Option<Box<dyn Device>> {
    match device::open(DeviceKind::Cuda) {
        Ok(device) => Some(device),
        Err(
            error @ (DeviceError::NotBuilt
            | DeviceError::Emulated
            | DeviceError::Unavailable { .. }),
        ) => {
            workspace::say!("SKIPPED: {error}");
            None
        }
        Err(error) => panic!("the GPU cannot be opened: {error}"),
    }
}

/// How many problems each contender passed. Panics with all failures, so that one run shows the pattern.
pub fn pass<P: Problem>(
    device: &dyn Device,
    contenders: &[Box<dyn Contender<P>>],
    problems: &[P],
    rules: &Rules,
    describe: impl Fn(&P) -> String,
) -> BTreeMap<String, usize> {
    assert!(!contenders.is_empty() && !problems.is_empty());
    let (mut failures, mut passed) = (Vec::new(), BTreeMap::new());
    for (number, problem) in problems.iter().enumerate() {
        let whole =
            device.info().kind == DeviceKind::Cuda || number.is_multiple_of(CPU_WATCHED_EVERY);
        if let Err(failure) = examine(device, contenders, problem, rules, whole, &mut passed) {
            failures.push(format!("{}: {failure}", describe(problem)));
        }
    }
    println!("of {} problems passed: {passed:?}", problems.len());
    assert!(
        failures.is_empty(),
        "{} failures:\n{}",
        failures.len(),
        failures.join("\n")
    );
    passed
}

/// The reference goes first, so that the others can be compared with it.
fn examine<P: Problem>(
    device: &dyn Device,
    contenders: &[Box<dyn Contender<P>>],
    problem: &P,
    rules: &Rules,
    whole: bool,
    passed: &mut BTreeMap<String, usize>,
) -> Result<(), String> {
    let options = GateOptions {
        units: rules.units,
        units_second: rules.units_second,
        ..GateOptions::new(rules.seed)
    };
    let mut gate = Gate::new(problem, options).map_err(|failure| failure.to_string())?;
    let set =
        BufferSet::new(device, problem.tensors(), rules.seed).map_err(|error| error.to_string())?;
    let mut order: Vec<_> = contenders.iter().collect();
    order.sort_by_key(|contender| contender.identity().kind != Kind::Reference);
    for contender in order {
        let identity = contender.identity();
        let name = &identity.name;
        match contender.supports(problem, device.info()) {
            Support::Yes => {}
            Support::No(_) if (rules.may_decline)(identity) => continue,
            Support::No(reason) => return Err(format!("{name} does not support it: {reason}")),
        }
        bind_and_examine(&gate, &set, &**contender, problem, whole)?;
        if rules.adopts_reference && identity.kind == Kind::Reference {
            gate.adopt_reference(&set)
                .map_err(|failure| format!("{name} {failure}"))?;
        }
        *passed.entry(name.clone()).or_default() += 1;
    }
    Ok(())
}

/// One contender on one set of buffers; if `whole`, also watched for stray and late writes.
pub fn bind_and_examine<P: Problem>(
    gate: &Gate,
    set: &BufferSet,
    contender: &dyn Contender<P>,
    problem: &P,
    whole: bool,
) -> Result<(), String> {
    let name = &contender.identity().name;
    let mut bound = contender
        .bind(problem, set.buffers(), set.device().info())
        .map_err(|error| format!("{name}: {error}"))?;
    let examined = if whole {
        gate.examine(set, &mut *bound)
    } else {
        gate.examine_values(set, &mut *bound)
    };
    let passed = examined.map(|_errors| ());
    passed.map_err(|failure| format!("{name} {failure}"))
}
