//! Correct answers of the training primitives, unit by unit, from the references.

use contender::Slice;
use numeric::DType;
use reference::activation::{gated, gated_backward};
use reference::{quantize, rmsnorm, rope, Real};
use tensor::Inputs;

use super::op::{Activation, Pass, Scaling, TrainingOp, GROUP};
use super::shape::{RopeShape, TrainingShape};
use crate::arithmetic::{read, slice, Store};
use crate::rows::RowShape;

/// Elements per unit if elements are independent: a gate that sampled whole rows of wide matrices
/// would spend more time on the sample than the contenders on the matrix.
const PIECE: usize = 1024;

/// Parts of rows, rows, tokens, or groups that share a scale.
pub fn units(op: TrainingOp, shape: TrainingShape) -> usize {
    match (op, shape) {
        (TrainingOp::Quantize(scaling), TrainingShape::Rows(shape)) => {
            Tiles::new(scaling, shape).count()
        }
        (TrainingOp::NormQuantize(_), TrainingShape::Rows(shape)) => shape.rows,
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
    /// Index of its first element.
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

/// An output's name, first element and values.
type Output<R> = (&'static str, usize, Vec<R>);

/// The output values of a unit. Quantisation rounds whatever `store` does: its definition says so.
pub fn unit<R: Real>(
    op: TrainingOp,
    shape: TrainingShape,
    inputs: &Inputs,
    unit: usize,
    store: Store,
) -> Vec<Slice> {
    let outputs: Vec<Output<R>> = match (op, shape) {
        (TrainingOp::Activation(activation, pass), TrainingShape::Rows(shape)) => {
            activated(activation, pass, Piece::new(shape, unit), inputs)
        }
        (TrainingOp::Packed(gate), TrainingShape::Rows(shape)) => {
            let piece = Piece::new(shape, unit);
            let first = 2 * piece.row * shape.columns + piece.column;
            let packed = inputs.tensor("gate_and_up");
            let gates = read::<R>(packed, first, piece.length);
            let ups = read::<R>(packed, first + shape.columns, piece.length);
            let pairs = gates.into_iter().zip(ups);
            let out = pairs.map(|(value, up)| gated(gate, value, up)).collect();
            vec![("out", piece.start, out)]
        }
        (TrainingOp::Rope(pairs, pass), TrainingShape::Rope(shape)) => {
            token(pairs, pass, shape, inputs, unit)
        }
        (TrainingOp::Quantize(scaling), TrainingShape::Rows(shape)) => {
            let x = inputs.tensor("x");
            let values = |start, length| read(x, start, length);
            return Tiles::new(scaling, shape).quantized(inputs, unit, values);
        }
        (TrainingOp::Dequantize(scaling), TrainingShape::Rows(shape)) => {
            let piece = Piece::new(shape, unit);
            let values = quantized_values::<R>(scaling, shape, inputs, piece);
            let (tiles, scales) = (Tiles::new(scaling, shape), inputs.tensor("scales"));
            let of_tensor = R::of(tensor_scale(scaling, inputs));
            let scaled = (piece.column..).zip(values).map(|(column, value)| {
                value * (R::of(scales.get(tiles.scale_of(piece.row, column))) * of_tensor)
            });
            vec![("out", piece.start, scaled.collect())]
        }
        (TrainingOp::NormQuantize(scaling), TrainingShape::Rows(shape)) if op.is_exact() => {
            let (start, norm) = (unit * shape.columns, exact_norm(op, shape, inputs, unit));
            let tiles = Tiles::new(scaling, shape);
            let of_row = unit * tiles.across()..(unit + 1) * tiles.across();
            let values = |first: usize, length| norm[first - start..][..length].to_vec();
            return of_row
                .flat_map(|tile| tiles.quantized(inputs, tile, values))
                .collect();
        }
        (TrainingOp::NormQuantize(_), TrainingShape::Rows(shape)) => {
            norm_quantized(op, shape, inputs, unit)
        }
        (op, shape) => unreachable!("{op} on {shape} cannot be constructed"),
    };
    let outputs = outputs.into_iter();
    outputs
        .map(|(name, start, values)| slice(inputs, name, start, values, store))
        .collect()
}

fn activated<R: Real>(
    activation: Activation,
    pass: Pass,
    Piece { start, length, .. }: Piece,
    inputs: &Inputs,
) -> Vec<Output<R>> {
    let of = |name| read::<R>(inputs.tensor(name), start, length).into_iter();
    let unit = activation.unit();
    match (activation.is_gated(), pass) {
        (false, Pass::Forward) => {
            let out = of("x").map(|x| unit.value(x)).collect();
            vec![("out", start, out)]
        }
        (false, Pass::Backward) => {
            let pairs = of("x").zip(of("out_gradient"));
            let gradients = pairs.map(|(x, gradient)| gradient * unit.derivative(x));
            vec![("x_gradient", start, gradients.collect())]
        }
        (true, Pass::Forward) => {
            let pairs = of("gate").zip(of("up"));
            let out = pairs.map(|(gate, up)| gated(unit, gate, up)).collect();
            vec![("out", start, out)]
        }
        (true, Pass::Backward) => {
            let triples = of("gate").zip(of("up")).zip(of("out_gradient"));
            let (gates, ups) = triples
                .map(|((gate, up), gradient)| gated_backward(unit, gate, up, gradient))
                .unzip();
            vec![("gate", start, gates), ("up", start, ups)]
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
) -> Vec<Output<R>> {
    let half = shape.dim / 2;
    let table = |name| read::<R>(inputs.tensor(name), token % shape.sequence * half, half);
    let (cos, mut sin) = (table("cos"), table("sin"));
    if pass == Pass::Backward {
        sin.iter_mut().for_each(|sin| *sin = -*sin);
    }
    let turned = |name, heads: usize| {
        let start = token * heads * shape.dim;
        let values = read::<R>(inputs.tensor(name), start, heads * shape.dim);
        let heads = values.chunks(shape.dim);
        let turned = heads.flat_map(|head| rope::rotate(pairs, head, &cos, &sin));
        (name, start, turned.collect())
    };
    vec![
        turned("queries", shape.query_heads),
        turned("keys", shape.key_heads),
    ]
}

/// One row in f32, each product rounded to nearest, with the inverse of the root rounded once from f64.
fn exact_norm(op: TrainingOp, shape: RowShape, inputs: &Inputs, row: usize) -> Vec<f32> {
    let columns = shape.columns;
    let x = read::<f32>(inputs.tensor("x"), row * columns, columns);
    let weight = read::<f32>(inputs.tensor("weight"), 0, columns);
    let wide: Vec<f64> = x.iter().copied().map(f64::from).collect();
    let rstd = rmsnorm::rstd(&wide, f64::from(op.epsilon().unwrap_or(0.0))) as f32;
    let pairs = x.into_iter().zip(weight);
    pairs.map(|(x, weight)| x * rstd * weight).collect()
}

/// One row: codes before they are rounded, and scales.
fn norm_quantized<R: Real>(
    op: TrainingOp,
    shape: RowShape,
    inputs: &Inputs,
    row: usize,
) -> Vec<Output<R>> {
    let (columns, start) = (shape.columns, row * shape.columns);
    let epsilon = R::of(f64::from(op.epsilon().unwrap_or(0.0)));
    let x = read::<R>(inputs.tensor("x"), start, columns);
    let weight = read::<R>(inputs.tensor("weight"), 0, columns);
    let norm = rmsnorm::forward(&x, &weight, epsilon);
    let mut codes = Vec::with_capacity(columns);
    let mut scales = Vec::new();
    for group in norm.chunks(GROUP) {
        let largest = group
            .iter()
            .fold(0.0, |most: f64, y| most.max(y.to_f64().abs()));
        let least = f64::from(f32::MIN_POSITIVE);
        let scale = R::of((R::of(largest) / R::of(448.0)).to_f64().max(least));
        let inverse = R::of(1.0) / scale;
        codes.extend(group.iter().map(|&y| y * inverse));
        scales.push(scale);
    }
    let first = row * columns.div_ceil(GROUP);
    vec![("quantized", start, codes), ("scales", first, scales)]
}

/// Elements before they are scaled.
fn quantized_values<R: Real>(
    scaling: Scaling,
    shape: RowShape,
    inputs: &Inputs,
    piece: Piece,
) -> Vec<R> {
    let codes = inputs.tensor("quantized");
    if !scaling.is_paired() {
        return read(codes, piece.start, piece.length);
    }
    let line = piece.row * shape.columns.div_ceil(2);
    let columns = piece.column..piece.column + piece.length;
    let values = columns.map(|column| {
        let pair = codes.get(line + column / 2) as u8;
        let code = if column % 2 == 0 { pair } else { pair >> 4 };
        R::of(f64::from(quantize::e2m1_value(code)))
    });
    values.collect()
}

/// 1 for a format that has none.
fn tensor_scale(scaling: Scaling, inputs: &Inputs) -> f64 {
    match scaling {
        Scaling::Nvfp4 => inputs.tensor("tensor_scale").get(0),
        _ => 1.0,
    }
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

    fn count(&self) -> usize {
        self.down() * self.across()
    }

    /// Index of an element's scale.
    fn scale_of(&self, row: usize, column: usize) -> usize {
        let (down, across) = (row / self.rows, column / self.columns);
        if self.scaling.is_tiled() {
            quantize::scale_place(down, across, self.across())
        } else {
            down * self.across() + across
        }
    }

    /// Scales that are padding and belong to no element: each is checked with one tile, whose row and
    /// column they have but for multiples of the matrix.
    fn padding(&self, (down, across): (usize, usize)) -> impl Iterator<Item = usize> + '_ {
        let (rows, columns) = if self.scaling.is_tiled() {
            let (rows, columns) = quantize::SCALE_TILE;
            (
                self.down().next_multiple_of(rows),
                self.across().next_multiple_of(columns),
            )
        } else {
            (self.down(), self.across())
        };
        let rows = (down..rows).step_by(self.down());
        let places = rows.flat_map(move |row| {
            let columns = (across..columns).step_by(self.across());
            columns.map(move |column| (row, column))
        });
        places
            .filter(move |place| *place != (down, across))
            .map(|(row, column)| quantize::scale_place(row, column, self.across()))
    }

    /// The rows of a tile, its scale, and zeros for the padding. The definition is in f32 and rounds to
    /// codes: there is exactly one correct answer. `values_at` has so many values from an index of the matrix on.
    fn quantized(
        &self,
        inputs: &Inputs,
        tile: usize,
        values_at: impl Fn(usize, usize) -> Vec<f32>,
    ) -> Vec<Slice> {
        let (down, across) = (tile / self.across(), tile % self.across());
        let scale_slice = |start: usize, scale: f64| Slice {
            tensor: inputs.place("scales"),
            start,
            values: vec![scale],
        };
        let scale_index = self.scale_of(down * self.rows, across * self.columns);
        let zero = match self.scaling.format() {
            Some(_) => DType::F8E8M0.decode_one(&[0]),
            None => 0.0,
        };
        let padding = self.padding((down, across));
        let padding = padding.map(|place| scale_slice(place, zero));
        let rows = down * self.rows..self.shape.rows.min((down + 1) * self.rows);
        let first = across * self.columns;
        let length = self.columns.min(self.shape.columns - first);
        let values: Vec<Vec<f32>> = rows
            .clone()
            .map(|row| values_at(row * self.shape.columns + first, length))
            .collect();
        let group = values.iter().flatten().copied();
        let of_e4m3 = self.scaling.format().filter(|_| !self.scaling.is_paired());
        let Some(format) = of_e4m3 else {
            let (scale, codes) = match self.scaling {
                Scaling::Mxfp4 => mxfp4(&values[0]),
                _ => nvfp4(tensor_scale(self.scaling, inputs) as f32, &values[0]),
            };
            let line = down * self.shape.columns.div_ceil(2);
            let quantized = Slice {
                tensor: inputs.place("quantized"),
                start: line + first / 2,
                values: codes.into_iter().map(f64::from).collect(),
            };
            let scale = scale_slice(scale_index, scale);
            return [quantized, scale].into_iter().chain(padding).collect();
        };
        let scale = quantize::scale(format, group);
        let mut slices: Vec<Slice> = rows
            .zip(&values)
            .map(|(row, values)| Slice {
                tensor: inputs.place("quantized"),
                start: row * self.shape.columns + first,
                values: values
                    .iter()
                    .map(|&x| DType::F8E4M3.round(f64::from(quantize::scaled(x, scale))))
                    .collect(),
            })
            .collect();
        slices.push(scale_slice(scale_index, f64::from(scale)));
        slices.extend(padding);
        slices
    }
}

/// The scale and the pairs of codes of a group.
fn nvfp4(tensor_scale: f32, group: &[f32]) -> (f64, Vec<u8>) {
    let scale = quantize::nvfp4_scale(tensor_scale, group.iter().copied());
    let scale = DType::F8E4M3.round(f64::from(scale));
    let code =
        |&x: &f32| quantize::e2m1_code(quantize::nvfp4_scaled(x, scale as f32, tensor_scale));
    (scale, in_pairs(group, code))
}

/// The same of MXFP4.
fn mxfp4(group: &[f32]) -> (f64, Vec<u8>) {
    let scale = quantize::mxfp4_scale(group.iter().copied());
    let code = |&x: &f32| quantize::e2m1_code(quantize::scaled(x, scale));
    (f64::from(scale), in_pairs(group, code))
}

fn in_pairs(group: &[f32], code: impl Fn(&f32) -> u8) -> Vec<u8> {
    let pairs = group.chunks(2);
    pairs
        .map(|pair| code(&pair[0]) | pair.get(1).map_or(0, &code) << 4)
        .collect()
}
