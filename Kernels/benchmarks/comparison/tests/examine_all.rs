//! What gate tests do with their problems, whatever these are.

use std::collections::BTreeMap;

use contender::{Contender, DeviceKind, Kind, Problem, Support};
use device::{Device, DeviceError};
use gate::{BufferSet, Gate, GateOptions};

pub const SEED: u64 = 20;

pub fn gpu() -> Option<Box<dyn Device>> {
    match device::open(DeviceKind::Cuda) {
        Ok(device) => Some(device),
        Err(error @ (DeviceError::NotBuilt | DeviceError::Unavailable { .. })) => {
            println!("SKIPPED: {error}");
            None
        }
        Err(error) => panic!("the GPU cannot be opened: {error}"),
    }
}

/// Panics with all failures, so that one run shows the pattern.
pub fn pass<P: Problem>(
    device: &dyn Device,
    contenders: &[Box<dyn Contender<P>>],
    problems: &[P],
    describe: impl Fn(&P) -> String,
) {
    assert!(!contenders.is_empty() && !problems.is_empty());
    let (mut failures, mut passed) = (Vec::new(), BTreeMap::new());
    for problem in problems {
        if let Err(failure) = examine(device, contenders, problem, &mut passed) {
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
}

/// The reference goes first and is then what every element is compared with. A baseline may say
/// that it does not support a shape; ours may not.
fn examine<P: Problem>(
    device: &dyn Device,
    contenders: &[Box<dyn Contender<P>>],
    problem: &P,
    passed: &mut BTreeMap<String, usize>,
) -> Result<(), String> {
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
        *passed.entry(name.clone()).or_default() += 1;
    }
    Ok(())
}
