//! Correct answers of the row operations, unit by unit, from the references.

use contender::Slice;
use rayon::prelude::*;
use reference::layernorm::Statistics;
use reference::{cross_entropy, layernorm, rmsnorm, softmax, Real};
use tensor::{Input, Inputs};

use super::op::NormOp;
use crate::arithmetic::{read, slice, Store};
use crate::rows::RowShape;

/// Columns of one unit of a weight gradient: few, because each takes a sum over all rows.
const COLUMN_GROUP: usize = 8;

/// Rows; after them, groups of columns of the weight's gradient.
pub fn units(op: NormOp, shape: RowShape) -> usize {
    let sums = matches!(op, NormOp::RmsNormBackward | NormOp::LayerNormBackward);
    let groups = if sums {
        shape.columns.div_ceil(COLUMN_GROUP)
    } else {
        0
    };
    shape.rows + groups
}

/// The arithmetic of an answer besides `R` itself.
#[derive(Clone, Copy)]
pub struct Arithmetic<R> {
    pub store: Store,
    /// Adds up the terms of a sum over rows.
    pub sum: fn(&[R]) -> R,
}

/// An output's name, first element and values.
type Output<R> = (&'static str, usize, Vec<R>);

/// The output values of a unit.
pub fn unit<R: Real + Send + Sync>(
    op: NormOp,
    shape: RowShape,
    inputs: &Inputs,
    unit: usize,
    arithmetic: Arithmetic<R>,
) -> Vec<Slice> {
    let outputs = if unit < shape.rows {
        row(op, shape, inputs, unit, arithmetic.store)
    } else {
        column_group(op, shape, inputs, unit - shape.rows, arithmetic.sum)
    };
    let outputs = outputs.into_iter();
    outputs
        .map(|(name, start, values)| slice(inputs, name, start, values, arithmetic.store))
        .collect()
}

/// Everything that depends on one row alone.
fn row<R: Real>(
    op: NormOp,
    shape: RowShape,
    inputs: &Inputs,
    row: usize,
    store: Store,
) -> Vec<Output<R>> {
    let epsilon = R::of(f64::from(op.epsilon().unwrap_or(0.0)));
    let start = row * shape.columns;
    let of_row = |name| read::<R>(inputs.tensor(name), start, shape.columns);
    let shared = |name| read::<R>(inputs.tensor(name), 0, shape.columns);
    let one = |name| R::of(inputs.tensor(name).get(row));
    let target = || inputs.tensor("target").get(row) as usize;
    let stored_as = |name| {
        let dtype = inputs.specs()[inputs.place(name)].dtype;
        move |value: R| R::of(store(dtype, value.to_f64()))
    };
    match op {
        NormOp::RmsNormForward => {
            let out = rmsnorm::forward(&of_row("x"), &shared("weight"), epsilon);
            vec![("out", start, out)]
        }
        NormOp::RmsNormBackward => {
            let (x, gradient) = (of_row("x"), of_row("out_gradient"));
            let dx = rmsnorm::backward(&x, &shared("weight"), &gradient, one("rstd"));
            vec![("x_gradient", start, dx)]
        }
        NormOp::FusedAddRmsNorm => {
            let stored = stored_as("residual");
            let (x, residual) = (of_row("x"), of_row("residual"));
            let (out, residual) =
                rmsnorm::fused_add(&x, &residual, &shared("weight"), epsilon, stored);
            vec![("x", start, out), ("residual", start, residual)]
        }
        NormOp::LayerNormForward => {
            let (weight, bias) = (shared("weight"), shared("bias"));
            let out = layernorm::forward(&of_row("x"), &weight, &bias, epsilon);
            vec![("out", start, out)]
        }
        NormOp::LayerNormBackward => {
            let saved = Statistics {
                mean: one("mean"),
                rstd: one("rstd"),
            };
            let (x, gradient) = (of_row("x"), of_row("out_gradient"));
            let dx = layernorm::backward(&x, &shared("weight"), &gradient, saved);
            vec![("x_gradient", start, dx)]
        }
        NormOp::SoftmaxForward => vec![("out", start, softmax::forward(&of_row("x")))],
        NormOp::SoftmaxBackward => {
            let stored = stored_as("out");
            let dx = softmax::backward(&of_row("out"), &of_row("out_gradient"), stored);
            vec![("x_gradient", start, dx)]
        }
        NormOp::CrossEntropyForward => {
            let (loss, lse) = cross_entropy::forward(&of_row("logits"), target());
            vec![("loss", row, vec![loss]), ("lse", row, vec![lse])]
        }
        NormOp::CrossEntropyBackward => {
            let (lse, gradient) = (one("lse"), one("loss_gradient"));
            let out = cross_entropy::backward(&of_row("logits"), target(), lse, gradient);
            vec![("logits_gradient", start, out)]
        }
        NormOp::CrossEntropyForwardBackward => {
            let (logits, target) = (of_row("logits"), target());
            let (loss, lse) = cross_entropy::forward(&logits, target);
            let gradient = cross_entropy::backward(&logits, target, lse, R::of(1.0));
            vec![("logits", start, gradient), ("loss", row, vec![loss])]
        }
    }
}

/// Sums over all rows, of which there may be millions: terms are computed in parallel, whatever all
/// columns share is computed once, and only one column's terms are held at a time.
fn column_group<R: Real + Send + Sync>(
    op: NormOp,
    shape: RowShape,
    inputs: &Inputs,
    group: usize,
    sum: fn(&[R]) -> R,
) -> Vec<Output<R>> {
    let start = group * COLUMN_GROUP;
    let columns = start..shape.columns.min(start + COLUMN_GROUP);
    let element = |tensor: Input, row, column| R::of(tensor.get(row * shape.columns + column));
    let per_row = |name| -> Vec<R> {
        let tensor = inputs.tensor(name);
        let rows = (0..shape.rows).into_par_iter();
        rows.map(|row| R::of(tensor.get(row))).collect()
    };
    // One value per column: the sum of a term over all rows.
    let sums = |term: &(dyn Fn(usize, usize) -> R + Sync)| -> Vec<R> {
        let terms = |column| -> Vec<R> {
            let rows = (0..shape.rows).into_par_iter();
            rows.map(|row| term(row, column)).collect()
        };
        columns.clone().map(|column| sum(&terms(column))).collect()
    };
    let (x, gradient) = (inputs.tensor("x"), inputs.tensor("out_gradient"));
    let rstd = per_row("rstd");
    match op {
        NormOp::RmsNormBackward => {
            let weights = sums(&|row, column| {
                let (x, gradient) = (element(x, row, column), element(gradient, row, column));
                rmsnorm::weight_gradient_term(x, gradient, rstd[row])
            });
            vec![("weight_gradient", start, weights)]
        }
        NormOp::LayerNormBackward => {
            let mean = per_row("mean");
            let weights = sums(&|row, column| {
                let saved = Statistics {
                    mean: mean[row],
                    rstd: rstd[row],
                };
                let (x, gradient) = (element(x, row, column), element(gradient, row, column));
                layernorm::weight_gradient_term(x, gradient, saved)
            });
            let biases = sums(&|row, column| element(gradient, row, column));
            vec![
                ("weight_gradient", start, weights),
                ("bias_gradient", start, biases),
            ]
        }
        op => unreachable!("{op} has no units beyond its rows"),
    }
}
