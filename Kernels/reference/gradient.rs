//! Numeric gradients, to check the analytic ones.

/// Values in [-1, 1) that look random.
pub fn values(seed: u64, count: u64) -> Vec<f64> {
    (0..count)
        .map(|index| {
            let mixed = (seed * 1000 + index + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            (mixed >> 11) as f64 / (1u64 << 52) as f64 - 1.0
        })
        .collect()
}

/// Central differences of `function` at `point`.
pub fn numeric(point: &[f64], function: impl Fn(&[f64]) -> f64) -> Vec<f64> {
    const STEP: f64 = 1e-5;
    (0..point.len())
        .map(|index| {
            let at = |offset: f64| {
                let mut moved = point.to_vec();
                moved[index] += offset;
                function(&moved)
            };
            (at(STEP) - at(-STEP)) / (2.0 * STEP)
        })
        .collect()
}

#[track_caller]
pub fn assert_close(actual: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(actual.len(), expected.len());
    for (index, (a, e)) in actual.iter().zip(expected).enumerate() {
        assert!(
            (a - e).abs() <= tolerance,
            "element {index}: {a}, expected {e}"
        );
    }
}
