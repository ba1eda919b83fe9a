//! Products of FP8 with UE8M0 scales, MXFP8, NVFP4 and MXFP4: their tensors, kinds of inputs, and values.

use std::ops::Range;

use contender::{Family, Statement};
use numeric::{bits, index_below, DType};
use reference::quantize::{e2m1_value, scale_place, tiled_scales};
use tensor::{Fill, Inputs, TensorSpec};

use super::shape::{GemmShape, RowLayout, ScaleTiles, SCALE_BLOCK};
use crate::kinds::{scattered, DRIFT, OUTLIERS, UNEVEN_ROWS};

/// Random stream of these scales.
const SCALE_STREAM: u32 = 0x5CA1F;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Fp8Ue8m0,
    Mxfp8,
    Nvfp4,
    Mxfp4,
}

impl Format {
    pub fn of(dtype: DType) -> Option<Self> {
        match dtype {
            DType::Fp8Ue8m0 => Some(Self::Fp8Ue8m0),
            DType::Mxfp8 => Some(Self::Mxfp8),
            DType::Nvfp4 => Some(Self::Nvfp4),
            DType::Mxfp4 => Some(Self::Mxfp4),
            _ => None,
        }
    }

    /// Elements of k that share a scale.
    pub fn block(self) -> usize {
        match self {
            Self::Fp8Ue8m0 => SCALE_BLOCK,
            Self::Mxfp8 | Self::Mxfp4 => 32,
            Self::Nvfp4 => 16,
        }
    }

    /// Rows of `b` that share one.
    pub fn block_rows(self) -> usize {
        match self {
            Self::Fp8Ue8m0 => SCALE_BLOCK,
            Self::Mxfp8 | Self::Nvfp4 | Self::Mxfp4 => 1,
        }
    }

    /// Elements of a byte.
    pub fn packing(self) -> usize {
        match self {
            Self::Fp8Ue8m0 | Self::Mxfp8 => 1,
            Self::Nvfp4 | Self::Mxfp4 => 2,
        }
    }

    /// Of operands.
    fn dtype(self) -> DType {
        match self {
            Self::Fp8Ue8m0 => DType::Fp8Ue8m0,
            Self::Mxfp8 => DType::Mxfp8,
            Self::Nvfp4 => DType::Nvfp4,
            Self::Mxfp4 => DType::Mxfp4,
        }
    }

    fn scale_dtype(self) -> DType {
        match self {
            Self::Fp8Ue8m0 | Self::Mxfp8 | Self::Mxfp4 => DType::F8E8M0,
            Self::Nvfp4 => DType::F8E4M3,
        }
    }
}

/// Of both operands: the values of NVFP4 are up to 6, their scales near 1.
const TENSOR_SCALE: f32 = 0.0625;

/// Replaces `a` and `b` by what the format stores, and adds the scales.
pub fn state(
    format: Format,
    tensors: &mut Vec<TensorSpec>,
    layout: &RowLayout,
    shape: GemmShape,
    seed: u64,
) {
    let k = shape.k;
    if format.packing() == 2 {
        let pairs = |name, rows| {
            TensorSpec::input(name, format.dtype(), &[rows, k / 2])
                .filled(Fill::Index { below: 256 })
        };
        tensors[0] = pairs("a", layout.rows);
        tensors[1] = pairs("b", layout.groups() * shape.n);
    }
    let blocks = k / format.block();
    let scales = |name, tiles: ScaleTiles, fill| {
        TensorSpec::input(name, format.scale_dtype(), &[tiles.count(blocks)]).filled(fill)
    };
    tensors.push(scales(
        "a_scales",
        layout.tiles_of_a(),
        of_a(format, layout, blocks, seed, |_, _| 1.0),
    ));
    tensors.push(scales(
        "b_scales",
        layout.tiles_of_b(shape.n),
        of_b(format, layout, (shape.n, blocks), seed, |_, _| 1.0),
    ));
    if format == Format::Nvfp4 {
        tensors.push(
            TensorSpec::input("tensor_scale", DType::F32, &[1]).filled(Fill::Uniform {
                low: TENSOR_SCALE,
                high: TENSOR_SCALE,
            }),
        );
    }
}

/// Scales of the rows of `a` that a group has, by the seed, times a factor of row and block.
fn of_a(
    format: Format,
    layout: &RowLayout,
    blocks: usize,
    seed: u64,
    factor: impl Fn(usize, usize) -> f64,
) -> Fill {
    let rows = layout.used_ranges().flat_map(|(_, rows)| rows);
    drawn(
        format,
        (layout.tiles_of_a(), 1),
        rows,
        blocks,
        (seed, 0),
        factor,
    )
}

/// Those of the matrices of groups that have rows.
fn of_b(
    format: Format,
    layout: &RowLayout,
    (n, blocks): (usize, usize),
    seed: u64,
    factor: impl Fn(usize, usize) -> f64,
) -> Fill {
    let groups = layout.used_ranges().map(|(group, _)| group);
    let rows = groups.flat_map(|group| group * n..(group + 1) * n);
    drawn(
        format,
        (layout.tiles_of_b(n), format.block_rows()),
        rows,
        blocks,
        (seed, 1),
        factor,
    )
}

/// Powers of two from 1/4 to 2, NVFP4's from 1/4 to 2 in quarters; some rows of a matrix share theirs. What belongs to
/// no row of a group is NaN: it must not matter.
fn drawn(
    format: Format,
    (tiles, sharing): (ScaleTiles, usize),
    rows: impl Iterator<Item = usize>,
    blocks: usize,
    (seed, stream): (u64, u32),
    factor: impl Fn(usize, usize) -> f64,
) -> Fill {
    let mut codes = vec![0xFF; tiles.count(blocks)];
    for (row, block) in rows.flat_map(|row| (0..blocks).map(move |block| (row, block))) {
        let place = tiles.place(row, block, blocks);
        let first = row - row % tiles.rows % sharing;
        let source = tiles.place(first, block, blocks);
        let random = bits(seed, SCALE_STREAM + stream, source as u64);
        let scale = match format {
            Format::Fp8Ue8m0 | Format::Mxfp8 | Format::Mxfp4 => {
                2f64.powi(index_below(random, 4) as i32 - 2)
            }
            Format::Nvfp4 => f64::from(1 + index_below(random, 8)) / 4.0,
        };
        format
            .scale_dtype()
            .encode_one(scale * factor(row, block), &mut codes[place..]);
    }
    Fill::Bytes(codes.into())
}

/// Gives a piece the scales that its rows have in the whole.
pub fn copy_rows(
    format: Format,
    whole: &[TensorSpec],
    rows: Range<usize>,
    k: usize,
    piece: &mut Statement,
) {
    let blocks = k / format.block();
    let inputs = Inputs::new(whole, 0);
    let scales = inputs.tensor("a_scales");
    let place = tensor::place(&piece.tensors, "a_scales");
    let mut codes = vec![0xFF; tiled_scales(rows.len(), blocks)];
    for (row, block) in (0..rows.len()).flat_map(|row| (0..blocks).map(move |block| (row, block))) {
        let scale = scales.get(scale_place(rows.start + row, block, blocks));
        let place = scale_place(row, block, blocks);
        format.scale_dtype().encode_one(scale, &mut codes[place..]);
    }
    piece.tensors[place] = piece.tensors[place]
        .clone()
        .filled(Fill::Bytes(codes.into()));
    // Those of b and of the tensor are the whole's.
    for name in ["b_scales", "tensor_scale"] {
        if let Some(spec) = whole.iter().find(|spec| spec.name == name) {
            let place = tensor::place(&piece.tensors, name);
            piece.tensors[place] = spec.clone();
        }
    }
}

/// Other kinds are other scales: of rows that differ, of blocks that stand out; and terms of one sign.
pub fn families(
    format: Format,
    statement: &Statement,
    layout: &RowLayout,
    GemmShape { n, k }: GemmShape,
) -> Vec<Family> {
    let blocks = k / format.block();
    const LEVELS: [f64; 4] = [1.0, 64.0, 0.0625, 8.0];
    let uneven = of_a(format, layout, blocks, 1, |row, _| {
        LEVELS[usize::from(scattered(row, LEVELS.len()))]
    });
    let outliers = of_b(format, layout, (n, blocks), 1, |_, block| {
        if block % 8 == 3 {
            32.0
        } else {
            1.0
        }
    });
    // The first of each pair has no sign, the second is 0.
    let positive = || match format {
        Format::Fp8Ue8m0 | Format::Mxfp8 => Fill::Uniform {
            low: 0.0,
            high: 1.0,
        },
        Format::Nvfp4 | Format::Mxfp4 => Fill::Index { below: 8 },
    };
    vec![
        statement.family(UNEVEN_ROWS, vec![("a_scales", uneven)]),
        statement.family(OUTLIERS, vec![("b_scales", outliers)]),
        statement.family(DRIFT, vec![("a", positive()), ("b", positive())]),
    ]
}

/// A row of an operand, each element times its scale's block: values and scales.
pub struct ScaledRow {
    values: Vec<f64>,
    scales: Vec<f64>,
}

/// A row of `a` or `b`, counted through all groups; that of `a` has the tensors' scale too.
pub fn scaled_row(
    format: Format,
    inputs: &Inputs,
    (name, tiles): (&str, ScaleTiles),
    row: usize,
    k: usize,
) -> ScaledRow {
    let (operand, blocks) = (inputs.tensor(name), k / format.block());
    let stored = k / format.packing();
    let stored = operand.range(row * stored, stored);
    let values = match format {
        Format::Fp8Ue8m0 | Format::Mxfp8 => stored,
        Format::Nvfp4 | Format::Mxfp4 => stored
            .iter()
            .flat_map(|&pair| [pair as u8, pair as u8 >> 4])
            .map(|code| f64::from(e2m1_value(code)))
            .collect(),
    };
    let (scales, of_tensor) = match (name, format) {
        ("a", Format::Nvfp4) => ("a_scales", inputs.tensor("tensor_scale").get(0)),
        ("a", _) => ("a_scales", 1.0),
        _ => ("b_scales", 1.0),
    };
    let scales = inputs.tensor(scales);
    let scale = |block| scales.get(tiles.place(row, block, blocks)) * of_tensor;
    ScaledRow {
        values,
        scales: (0..blocks).map(scale).collect(),
    }
}

/// The exact products of the elements that share scales, and the scale of their sum.
pub fn block_products(format: Format, a: &ScaledRow, b: &ScaledRow) -> Vec<(Vec<f64>, f64)> {
    let blocks = a.values.chunks(format.block());
    let blocks = blocks.zip(b.values.chunks(format.block()));
    let scales = a.scales.iter().zip(&b.scales);
    blocks
        .zip(scales)
        .map(|((a, b), (a_scale, b_scale))| {
            let products = a.iter().zip(b).map(|(a, b)| a * b);
            (products.collect(), a_scale * b_scale)
        })
        .collect()
}
