//! Correct answers of GEMMs: a piece of one row at a time.

use contender::Slice;
use numeric::DType;
use tensor::Inputs;

use super::block_scales::{block_products, scaled_row, Format};
use super::shape::{GemmShape, RowLayout, SCALE_BLOCK};

/// Columns of one unit of the gate: a piece of one row.
const UNIT_COLUMNS: usize = 16;

/// Pieces of rows.
pub fn units(shape: GemmShape, layout: &RowLayout) -> usize {
    layout.used_rows() * shape.n.div_ceil(UNIT_COLUMNS)
}

/// Sums of exact products in f64, of the dequantised operands.
pub fn oracle(shape: GemmShape, layout: &RowLayout, inputs: &Inputs, unit: usize) -> Vec<Slice> {
    answer(shape, layout, inputs, unit, |blocks| {
        blocks
            .iter()
            .map(|block| block.scale * block.products.iter().sum::<f64>())
            .sum()
    })
}

/// Tensor-core arithmetic, then one rounding to the output's type.
pub fn honest(shape: GemmShape, layout: &RowLayout, inputs: &Inputs, unit: usize) -> Vec<Slice> {
    let dtype = |name| inputs.specs()[inputs.place(name)].dtype;
    let (out, narrow) = (dtype("out"), dtype("a") == DType::F8E4M3);
    answer(shape, layout, inputs, unit, |blocks| {
        let mut total = 0f32;
        for block in blocks {
            let sum = if narrow {
                narrow_sum(&block.products)
            } else {
                block
                    .products
                    .chunks(INSTRUCTION_DEPTH)
                    .fold(0f32, |sum, chunk| sum + chunk.iter().sum::<f64>() as f32)
            };
            total += sum * block.scale as f32;
        }
        out.round(f64::from(total))
    })
}

/// Products that one tensor-core instruction adds at once.
const INSTRUCTION_DEPTH: usize = 32;

/// The sum that Hopper's FP8 tensor cores keep between promotions to fp32: 14 significant bits,
/// truncated rather than rounded after each instruction.
fn narrow_sum(products: &[f64]) -> f32 {
    const KEPT_BITS: u32 = 14;
    let mut sum = 0f64;
    for chunk in products.chunks(INSTRUCTION_DEPTH) {
        let exact = sum + chunk.iter().sum::<f64>();
        let largest = chunk
            .iter()
            .fold(sum.abs(), |most, product| most.max(product.abs()));
        // All terms are aligned to the largest before they are added.
        let exponent = largest.max(exact.abs()).log2().floor();
        let unit = (exponent - f64::from(KEPT_BITS - 1)).exp2();
        sum = if largest == 0.0 {
            0.0
        } else {
            (exact / unit).trunc() * unit
        };
    }
    sum as f32
}

/// The exact products of the k that share a scale, and the scale of their sum.
struct Block {
    products: Vec<f64>,
    scale: f64,
}

/// The values of a unit; `sum` computes one of them.
fn answer(
    GemmShape { n, k }: GemmShape,
    layout: &RowLayout,
    inputs: &Inputs,
    unit: usize,
    sum: impl Fn(&[Block]) -> f64,
) -> Vec<Slice> {
    let units_per_row = n.div_ceil(UNIT_COLUMNS);
    let (group, row) = layout.used_row(unit / units_per_row);
    let first = unit % units_per_row * UNIT_COLUMNS;
    let columns = first..n.min(first + UNIT_COLUMNS);
    let slice = |values| {
        vec![Slice {
            tensor: inputs.place("out"),
            start: row * n + first,
            values,
        }]
    };
    if let Some(format) = Format::of(inputs.specs()[inputs.place("a")].dtype) {
        let a = scaled_row(format, inputs, ("a", layout.tiles_of_a()), row, k);
        let value = |column| {
            let of_b = ("b", layout.tiles_of_b(n));
            let b = scaled_row(format, inputs, of_b, group * n + column, k);
            let blocks = block_products(format, &a, &b).into_iter();
            let blocks = blocks.map(|(products, scale)| Block { products, scale });
            sum(&blocks.collect::<Vec<_>>())
        };
        return slice(columns.map(value).collect());
    }
    let (deep, wide) = (k.div_ceil(SCALE_BLOCK), n.div_ceil(SCALE_BLOCK));
    let scaled = inputs.specs().iter().any(|spec| spec.name == "a_scales");
    let scales = scaled.then(|| (inputs.tensor("a_scales"), inputs.tensor("b_scales")));
    let (a, whole_b) = (inputs.tensor("a").range(row * k, k), inputs.tensor("b"));
    let mut b = vec![0.0; k];
    let mut values = Vec::new();
    for column in columns {
        whole_b.range_into((group * n + column) * k, &mut b);
        let scale = |block: usize| {
            scales.map_or(1.0, |(of_a, of_b)| {
                let place = (group * wide + column / SCALE_BLOCK) * deep + block;
                of_a.get(layout.a_scale_index(deep, block, group, row)) * of_b.get(place)
            })
        };
        let blocks: Vec<Block> = a
            .chunks(SCALE_BLOCK)
            .zip(b.chunks(SCALE_BLOCK))
            .enumerate()
            .map(|(index, (a, b))| Block {
                products: a.iter().zip(b).map(|(a, b)| a * b).collect(),
                scale: scale(index),
            })
            .collect();
        values.push(sum(&blocks));
    }
    slice(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_narrow_sum_drops_what_lies_below_its_bits() {
        assert_eq!(narrow_sum(&[1.0; 128]), 128.0);
        assert_eq!(narrow_sum(&[0.0; 64]), 0.0);
        // 2^13 and a half: the half is below the fourteenth bit.
        assert_eq!(narrow_sum(&[8192.0, 0.5]), 8192.0);
        assert_eq!(narrow_sum(&[-8192.0, -0.5]), -8192.0);
        assert_eq!(narrow_sum(&[4096.0, 0.5]), 4096.5);
        assert_eq!(narrow_sum(&[0.375, 0.25]), 0.625);
    }
}
