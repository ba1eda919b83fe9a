//! Rotary position embedding of one head: each pair of elements is rotated by its own angle.

use crate::Real;

/// Which elements of a head form a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pairs {
    /// `i` and `i + dim / 2`: GPT-NeoX, Llama in the Hugging Face layout.
    HalfSplit,
    /// `2 i` and `2 i + 1`: the RoFormer paper, GPT-J, DeepSeek.
    Interleaved,
}

impl Pairs {
    /// Indices of the two elements of pair `pair` in a head of `dim` elements.
    pub fn places(self, pair: usize, dim: usize) -> (usize, usize) {
        match self {
            Pairs::HalfSplit => (pair, pair + dim / 2),
            Pairs::Interleaved => (2 * pair, 2 * pair + 1),
        }
    }
}

/// Rotates every pair of a head; `cos` and `sin` have one value per pair. The gradient is the same
/// with `-sin`.
pub fn rotate<R: Real>(pairs: Pairs, head: &[R], cos: &[R], sin: &[R]) -> Vec<R> {
    let mut out = head.to_vec();
    for (pair, (&cos, &sin)) in cos.iter().zip(sin).enumerate() {
        let (first, second) = pairs.places(pair, head.len());
        out[first] = head[first] * cos - head[second] * sin;
        out[second] = head[second] * cos + head[first] * sin;
    }
    out
}

/// The angle of a pair at a position: `position * base^(-2 pair / dim)`.
pub fn angle(position: usize, pair: usize, dim: usize, base: f64) -> f64 {
    position as f64 * base.powf(-2.0 * pair as f64 / dim as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gradient::{assert_close, numeric, values};

    #[test]
    fn a_quarter_turn_swaps_a_pair() {
        let head = [1.0, 2.0, 3.0, 4.0];
        let turned = |pairs| rotate(pairs, &head, &[0.0, 1.0], &[1.0, 0.0]);
        assert_eq!(turned(Pairs::HalfSplit), [-3.0, 2.0, 1.0, 4.0]);
        assert_eq!(turned(Pairs::Interleaved), [-2.0, 1.0, 3.0, 4.0]);
    }

    #[test]
    fn the_gradient_turns_back() {
        let (head, gradient) = (values(1, 8), values(2, 8));
        let angles: Vec<f64> = (0..4).map(|pair| angle(5, pair, 8, 1e4)).collect();
        let cos: Vec<f64> = angles.iter().map(|angle| angle.cos()).collect();
        let sin: Vec<f64> = angles.iter().map(|angle| angle.sin()).collect();
        let back: Vec<f64> = sin.iter().map(|sin| -sin).collect();
        for pairs in [Pairs::HalfSplit, Pairs::Interleaved] {
            let loss = |head: &[f64]| -> f64 {
                let turned = rotate(pairs, head, &cos, &sin);
                turned.iter().zip(&gradient).map(|(o, g)| o * g).sum()
            };
            let analytic = rotate(pairs, &gradient, &cos, &back);
            assert_close(&analytic, &numeric(&head, loss), 1e-9);
        }
        assert_eq!(angle(7, 0, 8, 1e4), 7.0);
        assert!((angle(1, 2, 8, 1e4) - 0.01).abs() < 1e-15);
    }
}
