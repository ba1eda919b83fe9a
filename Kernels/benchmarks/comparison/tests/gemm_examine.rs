//! What both gate tests of matrix products do with their problems.

use contender::{Contender, DeviceKind, Problem, Support};
use device::{Device, DeviceError};
use gate::{BufferSet, Gate, GateOptions};
use workloads::GemmProblem;

use crate::gemm;

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

/// Panics with all failures, so that one run shows the pattern; and if a contender was never tried.
pub fn pass(device: &dyn Device, problems: &[GemmProblem]) {
    let contenders = gemm::contenders(device.info().kind);
    assert!(!contenders.is_empty());
    let mut passed = vec![0; contenders.len()];
    let mut failures = Vec::new();
    for problem in problems {
        let workload = problem.workload();
        let name = format!("{} {} {}", problem.op(), workload.name, problem.dtype);
        let tokens = &problem.layout.tokens;
        if let Err(failure) = examine(device, &contenders, problem, &mut passed) {
            failures.push(format!("{name} of tokens {tokens:?}: {failure}"));
        }
    }
    for (contender, count) in contenders.iter().zip(&passed) {
        let name = &contender.identity().name;
        println!("{name}: {count} of {} problems passed", problems.len());
    }
    assert!(
        failures.is_empty(),
        "{} failures:\n{}",
        failures.len(),
        failures.join("\n")
    );
    assert!(passed[0] > 0, "ours was never tried");
}

/// Examines everybody who supports the problem; ours must support all.
fn examine(
    device: &dyn Device,
    contenders: &[Box<dyn Contender<GemmProblem>>],
    problem: &GemmProblem,
    passed: &mut [usize],
) -> Result<(), String> {
    let options = GateOptions {
        units: 24,
        units_second: 8,
        ..GateOptions::new(SEED)
    };
    let gate = Gate::new(problem, options).map_err(|failure| failure.to_string())?;
    let mut set =
        BufferSet::new(device, problem.tensors(), SEED).map_err(|error| error.to_string())?;
    for (contender, passed) in contenders.iter().zip(passed) {
        let identity = contender.identity();
        if let Support::No(reason) = contender.supports(problem, device.info()) {
            if identity.name == "ours" {
                return Err(format!("{} does not support it: {reason}", identity.name));
            }
            continue;
        }
        let mut bound = contender
            .bind(problem, set.buffers(), device.info())
            .map_err(|error| format!("{}: {error}", identity.name))?;
        gate.examine(&mut set, &mut *bound)
            .map_err(|failure| format!("{} {failure}", identity.name))?;
        *passed += 1;
    }
    Ok(())
}
