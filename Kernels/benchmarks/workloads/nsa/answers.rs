//! Right answers of native sparse attention, unit by unit. A unit costs what it sees and no more.

use std::ops::Range;

use contender::Slice;
use numeric::DType;
use reference::{attention, Real};
use tensor::Inputs;

use super::op::NsaOp;
use super::problem::{nsa_gated_tensor, nsa_tensor, NsaProblem};

type Store = fn(DType, f64) -> f64;

/// In f64, not rounded.
pub fn exact(problem: &NsaProblem, inputs: &Inputs, unit: usize) -> Vec<Slice> {
    answers::<f64>(problem, inputs, unit, |_, value| value)
}

/// In f32, rounded to the types of what is stored, of weights, and of queries that the scale is
/// multiplied into: a kernel may do that before the product, and flash-linear-attention's do.
pub fn rounded(problem: &NsaProblem, inputs: &Inputs, unit: usize) -> Vec<Slice> {
    answers::<f32>(problem, inputs, unit, |dtype, value| dtype.round(value))
}

fn answers<R: Real>(
    problem: &NsaProblem,
    inputs: &Inputs,
    unit: usize,
    store: Store,
) -> Vec<Slice> {
    match problem.op {
        NsaOp::Gated => gated::<R>(problem, inputs, unit, store),
        _ => branch::<R>(problem, inputs, unit, store),
    }
}

/// The heads of one group of one token.
fn branch<R: Real>(problem: &NsaProblem, inputs: &Inputs, unit: usize, store: Store) -> Vec<Slice> {
    let (shape, dim) = (problem.shape, problem.shape.dim);
    let (token, group) = (unit / shape.groups, unit % shape.groups);
    let (mut keys, mut values) = (Vec::new(), Vec::new());
    let mut row = vec![0.0; dim];
    for place in rows(problem, token, group).into_iter().flatten() {
        let place = (place * shape.groups + group) * dim;
        for (tensor, elements) in [
            (nsa_tensor::KEYS, &mut keys),
            (nsa_tensor::VALUES, &mut values),
        ] {
            inputs.range_into(tensor, place, &mut row);
            elements.extend(row.iter().map(|&value| value as f32));
        }
    }
    let per_group = shape.heads_per_group();
    let first_head = token * shape.heads + group * per_group;
    let stored = |value: R| R::of(store(problem.dtype, value.to_f64()));
    let scale = R::of(f64::from(problem.scale));
    let (mut out, mut lse) = (Vec::new(), Vec::new());
    for head in first_head..first_head + per_group {
        let query = inputs.range(nsa_tensor::QUERIES, head * dim, dim);
        let query: Vec<R> = query
            .into_iter()
            .map(|q| stored(R::of(q) * scale))
            .collect();
        if keys.is_empty() {
            // Nothing to attend to: as flash-linear-attention has it.
            out.resize(out.len() + dim, 0.0);
            lse.push(0.0);
            continue;
        }
        let attended = attention::row(&query, &keys, &values, R::of(1.0), stored);
        out.extend(attended.out.into_iter().map(|value| stored(value).to_f64()));
        lse.push(store(DType::F32, attended.lse.to_f64()));
    }
    vec![
        Slice {
            tensor: nsa_tensor::OUT,
            start: first_head * dim,
            values: out,
        },
        Slice {
            tensor: nsa_tensor::LSE,
            start: first_head,
            values: lse,
        },
    ]
}

/// Which rows of the keys a token's group sees.
fn rows(problem: &NsaProblem, token: usize, group: usize) -> Vec<Range<usize>> {
    let shape = problem.shape;
    let (position, sequence) = (token % shape.sequence, token / shape.sequence);
    let first = sequence * shape.rows(problem.op);
    let moved = |range: Range<usize>| first + range.start..first + range.end;
    match &problem.selection {
        Some(selection) => selection
            .row(token, group)
            .map(|block| block * shape.block..((block + 1) * shape.block).min(position + 1))
            .map(moved)
            .collect(),
        None => vec![moved(shape.visible(problem.op, position))],
    }
}

/// One head of one token.
fn gated<R: Real>(problem: &NsaProblem, inputs: &Inputs, unit: usize, store: Store) -> Vec<Slice> {
    let dim = problem.shape.dim;
    let mut sums = vec![R::of(0.0); dim];
    let branches = nsa_gated_tensor::OUTPUTS
        .into_iter()
        .zip(nsa_gated_tensor::GATES);
    for (output, gate) in branches {
        let gate = R::of(inputs.get(gate, unit));
        let values = inputs.range(output, unit * dim, dim);
        for (sum, value) in sums.iter_mut().zip(values) {
            *sum = *sum + gate * R::of(value);
        }
    }
    let values = sums.into_iter();
    vec![Slice {
        tensor: nsa_gated_tensor::OUT,
        start: unit * dim,
        values: values
            .map(|value| store(problem.dtype, value.to_f64()))
            .collect(),
    }]
}
