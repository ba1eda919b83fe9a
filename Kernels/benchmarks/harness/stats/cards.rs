//! What a run on one card cannot show: how far its ratios are from those of another card, or another day.
//!
//! Two cards of a kind differ in voltage, temperature and the clock that they hold at their power limit, and kernels
//! answer to that differently. All processes of a run share it, so no interval of theirs contains it. A verdict is
//! about the card that was measured; what is claimed of the kind of card takes this spread on top.

/// Standard deviation of a Gaussian that covers 95 % of what a ratio's logarithm differs by between runs on different
/// cards or days, between any two of five runs of the same contenders on H200s. Most differ by less, some by more:
/// their own deviation is 0.0062, with longer tails.
pub const SPREAD_BETWEEN_CARDS: f64 = 0.01;
/// The part of it that all workloads of an operation share, so that a mean over them keeps it.
const SHARED_SPREAD: f64 = 0.005;
/// Two-sided 95 % of a Gaussian.
const Z95: f64 = 1.959_964;

/// A ratio's 95 % interval, from that of its own run, for a run on any card of the kind.
pub fn elsewhere(ratio: f64, low: f64, high: f64) -> (f64, f64) {
    widened(ratio, low, high, SPREAD_BETWEEN_CARDS)
}

/// The same for a mean over ratios with these weights.
pub(crate) fn mean_elsewhere(ratio: f64, low: f64, high: f64, weights: &[f64]) -> (f64, f64) {
    let alone = SPREAD_BETWEEN_CARDS.powi(2) - SHARED_SPREAD.powi(2);
    let squares: f64 = weights.iter().map(|weight| weight * weight).sum();
    let sum: f64 = weights.iter().sum();
    let variance = SHARED_SPREAD.powi(2) + alone * squares / (sum * sum);
    widened(ratio, low, high, variance.sqrt())
}

fn widened(ratio: f64, low: f64, high: f64, spread: f64) -> (f64, f64) {
    let widen = |end: f64| (end / ratio).ln().hypot(Z95 * spread).exp();
    (ratio / widen(low), ratio * widen(high))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_perfect_run_still_leaves_the_card_in_doubt() {
        let (low, high) = elsewhere(1.2, 1.2, 1.2);
        assert!((high / 1.2 - 1.0198).abs() < 1e-4 && (1.2 / low - 1.0198).abs() < 1e-4);
    }

    #[test]
    fn a_wide_interval_hardly_changes() {
        let (low, high) = elsewhere(1.0, 0.9, 1.1);
        assert!(low < 0.9 && low > 0.897 && high > 1.1 && high < 1.103);
    }

    #[test]
    fn a_mean_narrows_to_what_its_workloads_share() {
        let half = |count: usize| mean_elsewhere(1.0, 1.0, 1.0, &vec![2.0; count]).1.ln() / Z95;
        assert!((half(1) - SPREAD_BETWEEN_CARDS).abs() < 1e-12);
        assert!((half(1_000_000) - SHARED_SPREAD).abs() < 1e-5);
        assert!(half(4) < half(1) && half(4) > half(16));
    }
}
