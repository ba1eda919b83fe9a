//! Shared by the gate tests of decode over paged caches.

use contender::{Contenders, DeviceKind, Kind, Problem};
use device::Device;
use numeric::DType;

use crate::Rules;

const SEED: u64 = 20;
const RULES: Rules = Rules {
    seed: SEED,
    units: 6,
    units_second: 2,
    adopts_reference: true,
    // A portable kernel is a contender only if 'ours' is a different one.
    may_decline: |identity| identity.kind == Kind::Baseline || identity.name == "ours_portable",
};

/// The workloads in both types, their batches cut to `most` tokens.
pub fn suite_problems<S: Clone, W, P>(
    workloads: impl Iterator<Item = (S, W)>,
    most: usize,
    lengths: fn(&mut S) -> &mut Vec<usize>,
    problem: fn(S, DType, &W) -> P,
) -> Vec<P> {
    let each = workloads.flat_map(|(mut shape, workload)| {
        cut(lengths(&mut shape), most);
        [DType::Bf16, DType::F16].map(|dtype| problem(shape.clone(), dtype, &workload))
    });
    each.collect()
}

pub fn pass<P: Problem>(
    device: &dyn Device,
    contenders: fn(DeviceKind) -> Contenders<P>,
    problems: &[P],
    describe: impl Fn(&P) -> String,
) {
    let contenders = contenders(device.info().kind);
    crate::pass(device, &contenders, problems, &RULES, describe);
}

/// A batch of more than `most` tokens loses its first sequences, a single sequence loses tokens.
fn cut(lengths: &mut Vec<usize>, most: usize) {
    while lengths.len() > 1 && lengths.iter().sum::<usize>() > most {
        lengths.remove(0);
    }
    lengths.iter_mut().for_each(|n| *n = (*n).min(most));
}
