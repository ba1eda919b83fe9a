//! Correct answers of native sparse attention, unit by unit. A unit costs only what it sees.

use std::ops::Range;

use contender::Slice;
use reference::{attention, Real};
use tensor::Inputs;

use super::op::{NsaOp, GATED};
use super::shape::{NsaShape, Selection};
use crate::arithmetic::{read, slice, Store};

/// Everything an answer depends on besides the inputs.
#[derive(Clone, Copy)]
pub struct Case<'a> {
    pub op: NsaOp,
    pub shape: NsaShape,
    /// For the selected branch.
    pub selection: Option<&'a Selection>,
}

impl Case<'_> {
    /// One per group of a token; in the gated sum, per head.
    pub fn units(self) -> usize {
        let per_token = match self.op {
            NsaOp::Gated => self.shape.heads,
            _ => self.shape.groups,
        };
        self.shape.tokens() * per_token
    }

    /// If values are rounded when stored, so are weights, and queries premultiplied by the scale: a
    /// kernel may do that before the product, as flash-linear-attention's do.
    pub fn unit<R: Real>(self, inputs: &Inputs, unit: usize, store: Store) -> Vec<Slice> {
        match self.op {
            NsaOp::Gated => gated::<R>(self.shape.dim, inputs, unit, store),
            _ => self.branch::<R>(inputs, unit, store),
        }
    }

    /// The heads of one group of one token.
    fn branch<R: Real>(self, inputs: &Inputs, unit: usize, store: Store) -> Vec<Slice> {
        let (shape, dim) = (self.shape, self.shape.dim);
        let (token, group) = (unit / shape.groups, unit % shape.groups);
        let (mut keys, mut values) = (Vec::new(), Vec::new());
        let mut row = vec![0.0; dim];
        for place in self.rows(token, group).into_iter().flatten() {
            let place = (place * shape.groups + group) * dim;
            for (name, elements) in [("keys", &mut keys), ("values", &mut values)] {
                inputs.tensor(name).range_into(place, &mut row);
                elements.extend(row.iter().map(|&value| value as f32));
            }
        }
        let per_group = shape.heads_per_group();
        let first_head = token * shape.heads + group * per_group;
        let dtype = inputs.specs()[inputs.place("out")].dtype;
        let stored = |value: R| R::of(store(dtype, value.to_f64()));
        let scale = R::of(f64::from(shape.scale()));
        let (mut out, mut lse) = (Vec::new(), Vec::new());
        for head in first_head..first_head + per_group {
            if keys.is_empty() {
                // Nothing to attend to: as in flash-linear-attention.
                out.resize(out.len() + dim, R::of(0.0));
                lse.push(R::of(0.0));
                continue;
            }
            let query = read::<R>(inputs.tensor("queries"), head * dim, dim).into_iter();
            let query: Vec<R> = query.map(|q| stored(q * scale)).collect();
            let attended = attention::row(&query, &keys, &values, R::of(1.0), stored);
            out.extend(attended.out);
            lse.push(attended.lse);
        }
        vec![
            slice(inputs, "out", first_head * dim, out, store),
            slice(inputs, "lse", first_head, lse, store),
        ]
    }

    /// Which key rows a token's group sees.
    fn rows(self, token: usize, group: usize) -> Vec<Range<usize>> {
        let shape = self.shape;
        let (position, sequence) = (token % shape.sequence, token / shape.sequence);
        let first = sequence * shape.rows(self.op);
        let moved = |range: Range<usize>| first + range.start..first + range.end;
        match self.selection {
            Some(selection) => selection
                .row(token, group)
                .map(|block| block * shape.block..((block + 1) * shape.block).min(position + 1))
                .map(moved)
                .collect(),
            None => vec![moved(shape.visible(self.op, position))],
        }
    }
}

/// One head of one token.
fn gated<R: Real>(dim: usize, inputs: &Inputs, unit: usize, store: Store) -> Vec<Slice> {
    let mut sums = vec![R::of(0.0); dim];
    for (branch, gate) in GATED {
        let gate = R::of(inputs.tensor(gate).get(unit));
        let values = read::<R>(inputs.tensor(branch), unit * dim, dim);
        for (sum, value) in sums.iter_mut().zip(values) {
            *sum = *sum + gate * value;
        }
    }
    vec![slice(inputs, "out", unit * dim, sums, store)]
}
