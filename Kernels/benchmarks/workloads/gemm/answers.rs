//! Right answers of matrix products: a piece of one row at a time.

use contender::{Problem, Slice};
use numeric::DType;
use tensor::Inputs;

use super::problem::{GemmProblem, SCALE_BLOCK};

/// Sums of exact products in f64, of the operands as dequantised.
pub fn oracle(problem: &GemmProblem, inputs: &Inputs, unit: usize) -> Vec<Slice> {
    answer(problem, inputs, unit, |blocks| {
        blocks
            .iter()
            .map(|block| block.scale * block.products.iter().sum::<f64>())
            .sum()
    })
}

/// Tensor-core arithmetic, then one rounding to the output's type.
pub fn honest(problem: &GemmProblem, inputs: &Inputs, unit: usize) -> Vec<Slice> {
    let out = problem.tensors()[GemmProblem::OUT].dtype;
    let narrow = problem.dtype == DType::F8E4M3;
    answer(problem, inputs, unit, |blocks| {
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

/// The sum that Hopper's FP8 tensor cores keep between two promotions to fp32: 14 significant bits,
/// cut off and not rounded, after each instruction.
fn narrow_sum(products: &[f64]) -> f32 {
    const KEPT_BITS: u32 = 14;
    let mut sum = 0f64;
    for chunk in products.chunks(INSTRUCTION_DEPTH) {
        let exact = sum + chunk.iter().sum::<f64>();
        let largest = chunk
            .iter()
            .fold(sum.abs(), |most, product| most.max(product.abs()));
        // Everything is aligned to the largest term before it is added.
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

/// The exact products of 128 of k, and the scale of their sum.
struct Block {
    products: Vec<f64>,
    scale: f64,
}

/// The values of a unit; `sum` makes one of them.
fn answer(
    problem: &GemmProblem,
    inputs: &Inputs,
    unit: usize,
    sum: impl Fn(&[Block]) -> f64,
) -> Vec<Slice> {
    let (n, k) = (problem.shape.n, problem.shape.k);
    let (row, group, columns) = problem.unit(unit);
    let deep = k.div_ceil(SCALE_BLOCK);
    let a = inputs.range(GemmProblem::A, row * k, k);
    let start = row * n + columns.start;
    let mut b = vec![0.0; k];
    let mut values = Vec::with_capacity(columns.len());
    for column in columns {
        inputs.range_into(GemmProblem::B, (group * n + column) * k, &mut b);
        let scale = |block: usize| {
            if !problem.is_scaled() {
                return 1.0;
            }
            let wide = n.div_ceil(SCALE_BLOCK);
            let of_a = problem.a_scale_index(block, group, row);
            let of_b = (group * wide + column / SCALE_BLOCK) * deep + block;
            inputs.get(GemmProblem::A_SCALES, of_a) * inputs.get(GemmProblem::B_SCALES, of_b)
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
    vec![Slice {
        tensor: GemmProblem::OUT,
        start,
        values,
    }]
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
