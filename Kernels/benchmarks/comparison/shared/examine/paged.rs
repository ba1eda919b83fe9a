//! Shared by the gate tests of decode over paged caches.

use contender::{Contenders, DeviceKind, Kind, Problem};
use device::Device;
use numeric::DType;

use crate::Rules;

pub const SEED: u64 = 20;
const RULES: Rules = Rules {
    seed: SEED,
    units: 6,
    units_second: 2,
    adopts_reference: true,
    // A portable kernel is a contender only if 'ours' is a different one.
    may_decline: |identity| identity.kind == Kind::Baseline || identity.name == "ours_portable",
};

const RANDOM_SHAPES: u64 = 200;

/// Shared by all random shapes.
pub struct Batch {
    pub lengths: Vec<usize>,
    pub q_len: usize,
    pub page_size: usize,
    pub dtype: DType,
}

/// Seeded problems of all kinds: empty sequences, single tokens, whole and partial last pages.
pub fn random_problems<P>(
    most_tokens: usize,
    q_lens: [usize; 6],
    problem: impl Fn(Batch, &dyn Fn(u32, usize) -> usize) -> P,
) -> Vec<P> {
    let cases = 0..RANDOM_SHAPES;
    cases
        .map(|case| {
            let draw = crate::draw(SEED, case);
            let page_size = [1, 16, 32, 64, 128][draw(0, 5)];
            let q_len = q_lens[draw(3, 6)];
            let batch = 1 + draw(4, 9);
            let longest = 1 + draw(5, most_tokens / batch);
            let batch = Batch {
                lengths: random(&draw, batch, longest, q_len, page_size),
                q_len,
                page_size,
                dtype: [DType::Bf16, DType::F16][draw(8, 2)],
            };
            problem(batch, &draw)
        })
        .collect()
}

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

/// Empty sequences, only the new tokens, whole and partial last pages, and anything in between;
/// `draw` returns a number below its second argument, from the stream of its first.
fn random(
    draw: &dyn Fn(u32, usize) -> usize,
    batch: usize,
    longest: usize,
    q_len: usize,
    page_size: usize,
) -> Vec<usize> {
    (0..batch)
        .map(|sequence| match draw(10 + sequence as u32, 8) {
            0 => 0,
            // The caches of a step hold its new tokens; 1 if there is one.
            1 => q_len,
            2 => longest.next_multiple_of(page_size).max(q_len),
            3 => longest.next_multiple_of(page_size).max(q_len) + 1,
            _ => draw(40 + sequence as u32, longest).max(q_len),
        })
        .collect()
}

/// A batch of more than `most` tokens loses its first sequences, a single sequence loses tokens.
fn cut(lengths: &mut Vec<usize>, most: usize) {
    while lengths.len() > 1 && lengths.iter().sum::<usize>() > most {
        lengths.remove(0);
    }
    lengths.iter_mut().for_each(|n| *n = (*n).min(most));
}
