//! The row operations on the CPU: threaded over rows and vectorised, and, in the
//! modules `plain`, as one naive loop each: the baseline for the others.
//!
//! All arithmetic is in f32, whatever the element type. Matrices are dense and row major, `columns`
//! wide. Sums have a fixed order, so results do not depend on the number of threads.

mod columns;
pub mod cross_entropy;
pub mod layernorm;
mod naive;
pub mod rmsnorm;
pub mod softmax;

pub use columns::{Columns, ColumnsMut};
pub use host::Element;

#[cfg(test)]
mod tests {
    use half::bf16;

    use super::*;

    /// Odd sizes, so that vectors have tails.
    const ROWS: usize = 3;
    const COLUMNS: usize = 1001;

    fn values(seed: usize) -> Vec<bf16> {
        let value = |i: usize| ((i * 7919 + seed * 331) % 513) as f32 / 128.0 - 2.0;
        let all = 0..ROWS * COLUMNS;
        all.map(|i| bf16::from_f32(value(i))).collect()
    }

    /// Every result of every operation, as bits.
    fn everything() -> Vec<u16> {
        let (x, gradient) = (values(1), values(2));
        let wide: Vec<f32> = values(3)[..COLUMNS].iter().map(|x| x.to_f32()).collect();
        let (weight, columns, epsilon) = (Columns::Wide(&wide), COLUMNS, 1e-5);
        let rows = [0.5f32; ROWS];
        let mut results: Vec<Vec<bf16>> = Vec::new();
        let mut forward = |run: &dyn Fn(&mut [bf16])| {
            let mut out = x.clone();
            run(&mut out);
            results.push(out);
        };
        forward(&|out| rmsnorm::forward(&x, weight, out, columns, epsilon));
        forward(&|out| layernorm::forward(&x, weight, weight, out, columns, epsilon));
        forward(&|out| softmax::forward(&x, out, columns));
        forward(&|out| softmax::backward(&x, &gradient, out, columns));
        forward(&|out| {
            let mut residual = gradient.clone();
            rmsnorm::fused_add(out, &mut residual, weight, columns, epsilon);
        });
        let targets = [0i64, 500, 1000];
        forward(&|out| cross_entropy::backward(&x, &targets, &rows, &rows, out));
        let mut sums = vec![0f32; 5 * COLUMNS];
        let [weights, biases, rms, loss, lse] = {
            let mut parts = sums.chunks_mut(COLUMNS);
            std::array::from_fn(|_| parts.next().expect("five parts"))
        };
        let (loss, lse) = (&mut loss[..ROWS], &mut lse[..ROWS]);
        cross_entropy::forward(&x, &targets, loss, lse, columns);
        let mut logits = x.clone();
        cross_entropy::forward_backward(&mut logits, &targets, loss, columns);
        let (x, out_gradient) = (&x[..], &gradient[..]);
        let (mean, rstd) = (&rows[..], &rows[..]);
        let mut dx = [vec![bf16::ZERO; x.len()], vec![bf16::ZERO; x.len()]];
        let saved = rmsnorm::Saved {
            x,
            weight,
            out_gradient,
            rstd,
        };
        rmsnorm::backward(saved, &mut dx[0], ColumnsMut::Wide(rms), columns);
        let saved = layernorm::Saved {
            x,
            weight,
            out_gradient,
            mean,
            rstd,
        };
        let out = [weights, biases].map(ColumnsMut::Wide);
        let [weights, biases] = out;
        layernorm::backward(saved, &mut dx[1], weights, biases, columns);
        let narrow = results.iter().chain(&dx).chain([&logits]).flatten();
        let wide = sums.iter().flat_map(|sum| {
            let bits = sum.to_bits();
            [bits as u16, (bits >> 16) as u16]
        });
        narrow.map(|value| value.to_bits()).chain(wide).collect()
    }

    #[test]
    fn every_level_of_vectors_gives_the_same_bits() {
        let mut first: Option<Vec<u16>> = None;
        host::at_every_level(|level| {
            let results = everything();
            assert!(
                *first.get_or_insert_with(|| results.clone()) == results,
                "{level:?}"
            );
        });
    }
}
