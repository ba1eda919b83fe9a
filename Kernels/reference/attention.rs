//! Attention of one query over its visible keys.

use crate::softmax::largest;
use crate::{sum, Real};

/// The output, and the natural logarithm of the sum of exponentials of the scaled scores.
pub struct Attended<R> {
    pub out: Vec<R>,
    pub lse: R,
}

/// `softmax(scale * query . keys) . values`, keys of `query.len()` elements each and as many values,
/// whose number of elements follows.
///
/// Keys and values come as f32, which holds every input type exactly in half the memory of f64.
/// `stored` rounds a weight to its type in the second product: a tensor core reads both factors in
/// the type of the values.
///
/// # Panics
/// Without keys: there is nothing to attend to.
pub fn row<R: Real>(
    query: &[R],
    keys: &[f32],
    values: &[f32],
    scale: R,
    stored: impl Fn(R) -> R,
) -> Attended<R> {
    let width = query.len();
    let count = keys.len() / width;
    assert!(
        count > 0 && keys.len() == count * width && values.len().is_multiple_of(count),
        "{} and {} elements are not keys of {width} and as many values",
        keys.len(),
        values.len()
    );
    let value_width = values.len() / count;
    let widen = |value: f32| R::of(f64::from(value));
    let scores: Vec<R> = keys
        .chunks_exact(width)
        .map(|key| {
            let products = query.iter().zip(key).map(|(&q, &k)| q * widen(k));
            scale * products.fold(R::of(0.0), |total, product| total + product)
        })
        .collect();
    let largest = largest(&scores);
    let weights: Vec<R> = scores.iter().map(|&s| (s - largest).exp()).collect();
    let total = sum(weights.iter().copied());
    let mut out = vec![R::of(0.0); value_width];
    for (&weight, value) in weights.iter().zip(values.chunks_exact(value_width)) {
        let weight = stored(weight);
        for (out, &value) in out.iter_mut().zip(value) {
            *out = *out + weight * widen(value);
        }
    }
    for out in &mut out {
        *out = *out / total;
    }
    Attended {
        out,
        lse: largest + total.ln(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gradient::{assert_close, values};

    #[test]
    fn one_key_gives_its_value() {
        let attended = row(&[2.0f64, 1.0], &[3.0, 4.0], &[5.0, 6.0], 0.5, |p| p);
        assert_eq!(attended.out, [5.0, 6.0]);
        assert_eq!(attended.lse, 5.0);
    }

    #[test]
    fn known_shares() {
        // Scores 0 and ln 3: shares of a quarter and three quarters.
        let scale = 3f64.ln();
        let attended = row(&[1.0], &[0.0, 1.0], &[0.0, 4.0], scale, |p| p);
        assert_close(&attended.out, &[3.0], 1e-15);
        assert_close(&[attended.lse], &[4f64.ln()], 1e-15);
    }

    #[test]
    fn values_may_be_wider_or_narrower_than_keys() {
        let attended = row(&[1.0f64, 0.0], &[0.0, 9.0], &[1.0, 2.0, 3.0], 1.0, |p| p);
        assert_eq!(attended.out, [1.0, 2.0, 3.0]);
        let attended = row(&[0.0f64, 0.0], &[4.0; 4], &[1.0, 2.0], 1.0, |p| p);
        assert_eq!(attended.out, [1.5]);
    }

    #[test]
    fn large_scores_do_not_overflow_and_equal_keys_average() {
        let attended = row(&[1e4f32], &[1e4; 3], &[1.0, 2.0, 6.0], 1.0, |p| p);
        assert_eq!(attended.out, [3.0]);
        assert!(attended.lse.is_finite());
    }

    #[test]
    fn f32_is_near_f64() {
        let (query, keys) = (values(1, 64), values(2, 64 * 50));
        let keys: Vec<f32> = keys.iter().map(|&key| key as f32).collect();
        let narrow: Vec<f32> = query.iter().map(|&q| q as f32).collect();
        let query: Vec<f64> = narrow.iter().map(|&q| f64::from(q)).collect();
        let right = row(&query, &keys, &keys, 0.125, |p| p);
        let near = row(&narrow, &keys, &keys, 0.125, |p| p);
        let near: Vec<f64> = near.out.iter().map(|&out| f64::from(out)).collect();
        assert_close(&near, &right.out, 1e-6);
    }

    #[test]
    #[should_panic(expected = "not keys of 2")]
    fn refuses_no_keys() {
        row(&[1.0f64, 1.0], &[], &[], 1.0, |p| p);
    }
}
