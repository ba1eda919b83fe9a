//! Right answers of the training primitives, unit by unit, from the references.

use contender::{Problem, Slice};
use numeric::DType;
use reference::activation::{gated, gated_backward};
use reference::{quantize, rope, Real};
use tensor::Inputs;

use super::op::{Activation, Pass, Scaling, TrainingOp};
use super::problem::TrainingProblem;
use super::shape::{RopeShape, TrainingShape};
use crate::rows::RowShape;

/// Elements of a unit where every element stands on its own: a gate that samples whole rows of wide
/// matrices would spend more time on the sample than the contenders on the matrix.
const PIECE: usize = 1024;

pub fn units_of(problem: &TrainingProblem) -> usize {
    match (problem.op, problem.shape) {
        (TrainingOp::Quantize(scaling), TrainingShape::Rows(shape)) => {
            let tiles = Tiles::new(scaling, shape);
            tiles.down() * tiles.across()
        }
        (_, TrainingShape::Rows(shape)) => shape.rows * shape.columns.div_ceil(PIECE),
        (_, TrainingShape::Rope(shape)) => shape.tokens(),
    }
}

/// A part of one row.
#[derive(Clone, Copy)]
struct Piece {
    row: usize,
    column: usize,
    length: usize,
    /// Place of its first element.
    start: usize,
}

impl Piece {
    fn new(shape: RowShape, unit: usize) -> Self {
        let across = shape.columns.div_ceil(PIECE);
        let (row, column) = (unit / across, unit % across * PIECE);
        Self {
            row,
            column,
            length: PIECE.min(shape.columns - column),
            start: row * shape.columns + column,
        }
    }
}

/// In f64, not rounded; except quantisation, whose definition rounds.
pub fn exact(problem: &TrainingProblem, inputs: &Inputs, unit: usize) -> Vec<Slice> {
    answers::<f64>(problem, inputs, unit, |_, value| value)
}

/// In f32, rounded to the outputs' types.
pub fn rounded(problem: &TrainingProblem, inputs: &Inputs, unit: usize) -> Vec<Slice> {
    answers::<f32>(problem, inputs, unit, |dtype, value| dtype.round(value))
}

fn answers<R: Real>(
    problem: &TrainingProblem,
    inputs: &Inputs,
    unit_index: usize,
    store: fn(DType, f64) -> f64,
) -> Vec<Slice> {
    let outputs: Vec<(usize, usize, Vec<R>)> = match (problem.op, problem.shape) {
        (TrainingOp::Activation(activation, pass), TrainingShape::Rows(shape)) => {
            activated(activation, pass, Piece::new(shape, unit_index), inputs)
        }
        (TrainingOp::Packed(unit), TrainingShape::Rows(shape)) => {
            let piece = Piece::new(shape, unit_index);
            let first = 2 * piece.row * shape.columns + piece.column;
            let gates = read::<R>(inputs, 0, first, piece.length);
            let ups = read::<R>(inputs, 0, first + shape.columns, piece.length);
            let pairs = gates.into_iter().zip(ups);
            let out = pairs.map(|(gate, up)| gated(unit, gate, up)).collect();
            vec![(1, piece.start, out)]
        }
        (TrainingOp::Rope(pairs, pass), TrainingShape::Rope(shape)) => {
            token(pairs, pass, shape, inputs, unit_index)
        }
        (TrainingOp::Quantize(scaling), TrainingShape::Rows(shape)) => {
            return Tiles::new(scaling, shape).quantized(inputs, unit_index);
        }
        (TrainingOp::Dequantize(scaling), TrainingShape::Rows(shape)) => {
            let piece = Piece::new(shape, unit_index);
            let values = read::<R>(inputs, 0, piece.start, piece.length);
            let tiles = Tiles::new(scaling, shape);
            let scaled = (piece.column..).zip(values).map(|(column, value)| {
                value * R::of(inputs.get(1, tiles.scale_of(piece.row, column)))
            });
            vec![(2, piece.start, scaled.collect())]
        }
        (op, shape) => unreachable!("{op} on {shape} cannot be made"),
    };
    let specs = problem.tensors();
    outputs
        .into_iter()
        .map(|(tensor, start, values)| Slice {
            tensor,
            start,
            values: values
                .into_iter()
                .map(|value| store(specs[tensor].dtype, value.to_f64()))
                .collect(),
        })
        .collect()
}

fn read<R: Real>(inputs: &Inputs, tensor: usize, start: usize, length: usize) -> Vec<R> {
    let values = inputs.range(tensor, start, length);
    values.into_iter().map(R::of).collect()
}

fn activated<R: Real>(
    activation: Activation,
    pass: Pass,
    Piece { start, length, .. }: Piece,
    inputs: &Inputs,
) -> Vec<(usize, usize, Vec<R>)> {
    let of = |tensor| read::<R>(inputs, tensor, start, length);
    let unit = activation.unit();
    let (first, second) = (of(0), activation.is_gated() || pass == Pass::Backward);
    let second = if second { of(1) } else { Vec::new() };
    let pairs = || first.iter().copied().zip(second.iter().copied());
    match (activation.is_gated(), pass) {
        (false, Pass::Forward) => {
            let out = first.iter().map(|&x| unit.value(x)).collect();
            vec![(1, start, out)]
        }
        (false, Pass::Backward) => {
            let gradients = pairs().map(|(x, gradient)| gradient * unit.derivative(x));
            vec![(2, start, gradients.collect())]
        }
        (true, Pass::Forward) => {
            let out = pairs().map(|(gate, up)| gated(unit, gate, up)).collect();
            vec![(2, start, out)]
        }
        (true, Pass::Backward) => {
            let (gates, ups) = pairs()
                .zip(of(2))
                .map(|((gate, up), gradient)| gated_backward(unit, gate, up, gradient))
                .unzip();
            vec![(0, start, gates), (1, start, ups)]
        }
    }
}

/// All heads of one token.
fn token<R: Real>(
    pairs: rope::Pairs,
    pass: Pass,
    shape: RopeShape,
    inputs: &Inputs,
    token: usize,
) -> Vec<(usize, usize, Vec<R>)> {
    let half = shape.dim / 2;
    let table = |tensor| read::<R>(inputs, tensor, token % shape.sequence * half, half);
    let (cos, mut sin) = (table(2), table(3));
    if pass == Pass::Backward {
        sin.iter_mut().for_each(|sin| *sin = -*sin);
    }
    let turned = |tensor, heads: usize| {
        let start = token * heads * shape.dim;
        let values = read::<R>(inputs, tensor, start, heads * shape.dim);
        let heads = values.chunks(shape.dim);
        let turned = heads.flat_map(|head| rope::rotate(pairs, head, &cos, &sin));
        (tensor, start, turned.collect())
    };
    vec![turned(0, shape.query_heads), turned(1, shape.key_heads)]
}

/// How a matrix is cut into tiles that share a scale.
struct Tiles {
    scaling: Scaling,
    shape: RowShape,
    rows: usize,
    columns: usize,
}

impl Tiles {
    fn new(scaling: Scaling, shape: RowShape) -> Self {
        let (rows, columns) = scaling.tile(shape.columns);
        Self {
            scaling,
            shape,
            rows,
            columns,
        }
    }

    fn down(&self) -> usize {
        self.shape.rows.div_ceil(self.rows)
    }

    fn across(&self) -> usize {
        self.shape.columns.div_ceil(self.columns)
    }

    /// Place of an element's scale.
    fn scale_of(&self, row: usize, column: usize) -> usize {
        row / self.rows * self.across() + column / self.columns
    }

    /// The rows of a tile and its scale. The definition is in f32 and rounds to e4m3: there is one
    /// right answer.
    fn quantized(&self, inputs: &Inputs, tile: usize) -> Vec<Slice> {
        let (down, across) = (tile / self.across(), tile % self.across());
        let rows = down * self.rows..self.shape.rows.min((down + 1) * self.rows);
        let first = across * self.columns;
        let length = self.columns.min(self.shape.columns - first);
        let values: Vec<Vec<f32>> = rows
            .clone()
            .map(|row| read(inputs, 0, row * self.shape.columns + first, length))
            .collect();
        let scale = quantize::scale(self.scaling.format(), values.iter().flatten().copied());
        let mut slices: Vec<Slice> = rows
            .zip(&values)
            .map(|(row, values)| Slice {
                tensor: 1,
                start: row * self.shape.columns + first,
                values: values
                    .iter()
                    .map(|&x| DType::F8E4M3.round(f64::from(quantize::scaled(x, scale))))
                    .collect(),
            })
            .collect();
        slices.push(Slice {
            tensor: 2,
            start: tile,
            values: vec![f64::from(scale)],
        });
        slices
    }
}
