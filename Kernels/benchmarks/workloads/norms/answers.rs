//! Right answers of the row operations, unit by unit, from the references.

use contender::Slice;
use numeric::DType;
use rayon::prelude::*;
use reference::layernorm::Statistics;
use reference::{cross_entropy, layernorm, rmsnorm, softmax, Real};
use tensor::Inputs;

use super::op::NormOp;
use super::problem::{NormProblem, COLUMN_GROUP};

/// Reads inputs as `R`.
struct Reader<'a> {
    inputs: &'a Inputs<'a>,
    columns: usize,
}

impl Reader<'_> {
    fn row<R: Real>(&self, tensor: usize, row: usize) -> Vec<R> {
        self.range(tensor, row * self.columns, self.columns)
    }

    /// A tensor with one element per column.
    fn shared<R: Real>(&self, tensor: usize) -> Vec<R> {
        self.range(tensor, 0, self.columns)
    }

    fn range<R: Real>(&self, tensor: usize, start: usize, length: usize) -> Vec<R> {
        self.inputs
            .range(tensor, start, length)
            .into_iter()
            .map(R::of)
            .collect()
    }

    fn one<R: Real>(&self, tensor: usize, index: usize) -> R {
        R::of(self.inputs.get(tensor, index))
    }

    fn index(&self, tensor: usize, index: usize) -> usize {
        self.inputs.get(tensor, index) as usize
    }
}

/// The arithmetic of an answer besides `R` itself.
pub struct Arithmetic<R> {
    /// Rounds a value to the type that it is stored in.
    pub store: fn(DType, f64) -> f64,
    /// Adds up the terms of a sum over rows.
    pub sum: fn(&[R]) -> R,
}

/// The output values of a unit.
pub fn unit<R: Real + Send + Sync>(
    problem: &NormProblem,
    inputs: &Inputs,
    unit: usize,
    arithmetic: Arithmetic<R>,
) -> Vec<Slice> {
    let Arithmetic { store, sum } = arithmetic;
    let reader = Reader {
        inputs,
        columns: problem.shape.columns,
    };
    let outputs: Vec<(usize, usize, Vec<R>)> = if unit < problem.shape.rows {
        row(problem, &reader, unit, store)
    } else {
        column_group(problem, &reader, unit - problem.shape.rows, sum)
    };
    outputs
        .into_iter()
        .map(|(tensor, start, values)| {
            let dtype = inputs.specs()[tensor].dtype;
            let values = values
                .into_iter()
                .map(|value| store(dtype, value.to_f64()))
                .collect();
            Slice {
                tensor,
                start,
                values,
            }
        })
        .collect()
}

/// Tensor, first element and values of everything that depends on one row alone. Tensor numbers are
/// places in the problem's list.
fn row<R: Real>(
    problem: &NormProblem,
    reader: &Reader,
    row: usize,
    store: fn(DType, f64) -> f64,
) -> Vec<(usize, usize, Vec<R>)> {
    let epsilon = R::of(f64::from(problem.epsilon));
    let start = row * problem.shape.columns;
    let x = reader.row::<R>(0, row);
    match problem.op {
        NormOp::RmsNormForward => {
            vec![(2, start, rmsnorm::forward(&x, &reader.shared(1), epsilon))]
        }
        NormOp::RmsNormBackward => {
            let gradient = reader.row(2, row);
            let dx = rmsnorm::backward(&x, &reader.shared(1), &gradient, reader.one(3, row));
            vec![(4, start, dx)]
        }
        NormOp::FusedAddRmsNorm => {
            let dtype = problem.types.activation;
            let stored = |value: R| R::of(store(dtype, value.to_f64()));
            let residual = reader.row(1, row);
            let (out, residual) =
                rmsnorm::fused_add(&x, &residual, &reader.shared(2), epsilon, stored);
            vec![(0, start, out), (1, start, residual)]
        }
        NormOp::LayerNormForward => {
            let out = layernorm::forward(&x, &reader.shared(1), &reader.shared(2), epsilon);
            vec![(3, start, out)]
        }
        NormOp::LayerNormBackward => {
            let saved = Statistics {
                mean: reader.one(3, row),
                rstd: reader.one(4, row),
            };
            let gradient = reader.row(2, row);
            vec![(
                5,
                start,
                layernorm::backward(&x, &reader.shared(1), &gradient, saved),
            )]
        }
        NormOp::SoftmaxForward => vec![(1, start, softmax::forward(&x))],
        NormOp::SoftmaxBackward => {
            vec![(2, start, softmax::backward(&x, &reader.row(1, row)))]
        }
        NormOp::CrossEntropyForward => {
            let (loss, lse) = cross_entropy::forward(&x, reader.index(1, row));
            vec![(2, row, vec![loss]), (3, row, vec![lse])]
        }
        NormOp::CrossEntropyBackward => {
            let (lse, gradient) = (reader.one(2, row), reader.one(3, row));
            let target = reader.index(1, row);
            vec![(4, start, cross_entropy::backward(&x, target, lse, gradient))]
        }
        NormOp::CrossEntropyForwardBackward => {
            let target = reader.index(1, row);
            let (loss, lse) = cross_entropy::forward(&x, target);
            let gradient = cross_entropy::backward(&x, target, lse, R::of(1.0));
            vec![(0, start, gradient), (2, row, vec![loss])]
        }
    }
}

/// Sums over all rows, of which there may be millions: terms are made in parallel, what all columns
/// share is made once, and one column's terms are held at a time.
fn column_group<R: Real + Send + Sync>(
    problem: &NormProblem,
    reader: &Reader,
    group: usize,
    sum: fn(&[R]) -> R,
) -> Vec<(usize, usize, Vec<R>)> {
    let rows = problem.shape.rows;
    let start = group * COLUMN_GROUP;
    let columns = start..problem.shape.columns.min(start + COLUMN_GROUP);
    let element =
        |tensor, row, column| reader.one::<R>(tensor, row * problem.shape.columns + column);
    let per_row = |tensor| -> Vec<R> {
        (0..rows)
            .into_par_iter()
            .map(|row| reader.one(tensor, row))
            .collect()
    };
    // One value per column: the sum of a term over all rows.
    let sums = |term: &(dyn Fn(usize, usize) -> R + Sync)| -> Vec<R> {
        let terms = |column| -> Vec<R> {
            (0..rows)
                .into_par_iter()
                .map(|row| term(row, column))
                .collect()
        };
        columns.clone().map(|column| sum(&terms(column))).collect()
    };
    match problem.op {
        NormOp::RmsNormBackward => {
            let rstd = per_row(3);
            let weights = sums(&|row, column| {
                let (x, gradient) = (element(0, row, column), element(2, row, column));
                rmsnorm::weight_gradient_term(x, gradient, rstd[row])
            });
            vec![(5, start, weights)]
        }
        NormOp::LayerNormBackward => {
            let (mean, rstd) = (per_row(3), per_row(4));
            let weights = sums(&|row, column| {
                let saved = Statistics {
                    mean: mean[row],
                    rstd: rstd[row],
                };
                let (x, gradient) = (element(0, row, column), element(2, row, column));
                layernorm::weight_gradient_term(x, gradient, saved)
            });
            let biases = sums(&|row, column| element(2, row, column));
            vec![(6, start, weights), (7, start, biases)]
        }
        op => unreachable!("{op} has no units beyond its rows"),
    }
}
