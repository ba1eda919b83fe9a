//! The sum of the three branches, each multiplied by a gate per token and head.

use host::Element;
use rayon::prelude::*;

/// Outputs `[tokens, heads, dim]` and gates `[tokens, heads]`, one of each per branch.
#[derive(Clone, Copy, Debug)]
pub struct Gated<'a, T> {
    pub outputs: [&'a [T]; 3],
    pub gates: [&'a [T]; 3],
    pub dim: usize,
}

/// Heads per task.
const HEADS: usize = 64;

pub fn gated_sum<T: Element>(input: &Gated<T>, out: &mut [T]) {
    let dim = input.dim;
    out.par_chunks_mut(HEADS * dim).enumerate().for_each_init(
        || (vec![0.0; dim], vec![0.0; dim]),
        |(row, sums), (task, out)| {
            for (offset, out) in out.chunks_exact_mut(dim).enumerate() {
                let head = task * HEADS + offset;
                sums.fill(0.0);
                for (output, gate) in input.outputs.iter().zip(input.gates) {
                    T::widen_all(&output[head * dim..][..dim], row);
                    let gate = gate[head].widen();
                    for (sum, value) in sums.iter_mut().zip(&*row) {
                        *sum += gate * value;
                    }
                }
                T::narrow_all(sums, out);
            }
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_plain_loop() {
        let (heads, dim) = (130, 3);
        let value = |index: usize| (index * 29 % 17) as f32 - 8.0;
        let outputs = [0, 1, 2].map(|b| (0..heads * dim).map(|i| value(i + b)).collect());
        let gates = [5, 6, 7].map(|b| (0..heads).map(|i| value(i + b)).collect());
        let (outputs, gates): ([Vec<f32>; 3], [Vec<f32>; 3]) = (outputs, gates);
        let input = Gated {
            outputs: outputs.each_ref().map(|output| &output[..]),
            gates: gates.each_ref().map(|gate| &gate[..]),
            dim,
        };
        let mut out = [vec![0.0f32; heads * dim], vec![1.0; heads * dim]];
        gated_sum(&input, &mut out[0]);
        crate::plain::gated_sum(&input, &mut out[1]);
        assert_eq!(out[0], out[1]);
        let first = value(5) * value(0) + value(6) * value(1) + value(7) * value(2);
        assert_eq!(out[1][0], first);
    }
}
