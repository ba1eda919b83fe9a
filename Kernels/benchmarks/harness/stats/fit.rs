//! A robust location of a series of rounds, and how well the series pins it down.
//!
//! Location: Huber's M-estimator. Not the median, because event timers tick: a 5 us kernel on a
//! 32 ns timer has samples 0.64 % apart, so the median of its ratios can only land on a tick and
//! cannot see a 1 % change; Huber's estimator averages over the ticks. Not the mean, because one
//! interrupted sample would move it. The scale comes from the innermost 30 % of the deviations, so
//! that a contender that flips between two speeds does not blow it up.
//!
//! Spread: rounds are not independent (heat, clocks), so blocks of neighbouring rounds are
//! resampled instead of single rounds. Block length: Politis and White (2004, corrected 2009).

use crate::random::Random;
use crate::summary::{quantile, sorted};

/// Tuning constant of Huber's function, in scales: 95 % efficiency on Gaussian data.
const CORNER: f64 = 1.345;
/// Share of the deviations that set the scale, and the Gaussian |z| at that share.
const SCALE_SHARE: f64 = 0.3;
const SCALE_AT_SHARE: f64 = 0.385_320_466_407_568;
/// Minimum number of blocks in a series, whatever its autocorrelation.
const BLOCKS_MIN: usize = 8;

/// Blocks are longer than the least-squared-error choice: correlation they miss makes intervals too
/// narrow, which hurts a verdict more than a little extra variance.
const BLOCK_STRETCH: f64 = 1.7;

/// The fitted location of a series, with what is needed to resample it.
pub(crate) struct Fit {
    pub(crate) location: f64,
    scale: f64,
    /// Huber's psi of each residual, in scales, and whether it is on the linear part.
    psi: Vec<f64>,
    linear: Vec<bool>,
    block: usize,
    /// What a timer's step can hide: if `n` samples show no event, its probability is, with 95 %
    /// confidence, below 3 / n (the rule of three).
    hidden: f64,
}

impl Fit {
    /// `resolution` is the timer's step in the unit of the values; the scale never goes below it.
    pub(crate) fn new(values: &[f64], resolution: f64) -> Fit {
        assert!(!values.is_empty(), "fit of no values");
        let ascending = sorted(values);
        let median = quantile(&ascending, 0.5);
        let deviations: Vec<f64> = values.iter().map(|value| (value - median).abs()).collect();
        let scale = (quantile(&sorted(&deviations), SCALE_SHARE) / SCALE_AT_SHARE)
            .max(resolution)
            .max(f64::EPSILON);
        let location = huber_location(values, median, scale);
        let residual = |value: &f64| (value - location) / scale;
        let psi: Vec<f64> = values
            .iter()
            .map(|value| residual(value).clamp(-CORNER, CORNER))
            .collect();
        let linear = values
            .iter()
            .map(|value| residual(value).abs() <= CORNER)
            .collect();
        let block = block_length(&psi);
        let hidden = 3.0 * resolution / values.len() as f64;
        Fit {
            location,
            scale,
            psi,
            linear,
            block,
            hidden,
        }
    }

    fn blocks(&self) -> usize {
        (self.psi.len() / self.block).max(2)
    }

    /// Half-width of the 95 % interval from the variance of the block sums: what the bootstrap
    /// converges to, but cheap enough to compute between rounds.
    pub(crate) fn half_width(&self) -> f64 {
        (self.inflation() * GAUSS_975 * self.spread()).max(self.hidden)
    }

    /// Standard error of the location, and no less than what the timer's step can hide.
    pub(crate) fn standard_error(&self) -> f64 {
        let blocks = self.blocks() as f64;
        let lost = (blocks / (blocks - 1.0)).sqrt();
        (lost * self.spread()).max(self.hidden / GAUSS_975)
    }

    /// From the variance of the block sums.
    fn spread(&self) -> f64 {
        let count = self.psi.len() as f64;
        let sums = self.circular_block_sums();
        let mean = self.psi.iter().sum::<f64>() / count * self.block as f64;
        let variance = sums
            .iter()
            .map(|(sum, _)| (sum - mean).powi(2))
            .sum::<f64>()
            / (count * self.block as f64);
        let slope = self.linear.iter().filter(|&&linear| linear).count().max(1) as f64 / count;
        self.scale * (variance / count).sqrt() / slope
    }

    /// 95 % interval of the location: circular block bootstrap of the one-step estimator (a Newton
    /// step from the fit, on each resample), widened by Student's t for the count of blocks.
    pub(crate) fn interval(&self, resamples: usize, seed: u64) -> (f64, f64) {
        let sums = self.circular_block_sums();
        let mut random = Random::new(seed);
        let blocks = self.blocks();
        let mut steps: Vec<f64> = (0..resamples)
            .map(|_| {
                let (mut psi, mut linear) = (0.0, 0.0);
                for _ in 0..blocks {
                    let (psi_sum, linear_sum) = sums[random.below(sums.len())];
                    psi += psi_sum;
                    linear += linear_sum;
                }
                self.scale * psi / f64::max(linear, 1.0)
            })
            .collect();
        sort_tails(&mut steps, 0.025);
        let used = (blocks * self.block) as f64 / self.psi.len() as f64;
        let widen = self.inflation() * used.sqrt();
        let below = (widen * quantile(&steps, 0.025)).min(-self.hidden);
        let above = (widen * quantile(&steps, 0.975)).max(self.hidden);
        (self.location + below, self.location + above)
    }

    /// Sums of psi and of the linear rounds over the block that starts at each round, wrapping at the end.
    fn circular_block_sums(&self) -> Vec<(f64, f64)> {
        let count = self.psi.len();
        let mut psi = self.psi[..self.block].iter().sum::<f64>();
        let mut linear = self.linear[..self.block]
            .iter()
            .filter(|&&linear| linear)
            .count() as f64;
        let mut sums = Vec::with_capacity(count);
        for start in 0..count {
            sums.push((psi, linear));
            let next = (start + self.block) % count;
            psi += self.psi[next] - self.psi[start];
            linear += f64::from(self.linear[next]) - f64::from(self.linear[start]);
        }
        sums
    }

    /// Student's t over Gauss, and the lost degree of freedom of the resampled variance.
    fn inflation(&self) -> f64 {
        let blocks = self.blocks() as f64;
        student_975(blocks - 1.0) / GAUSS_975 * (blocks / (blocks - 1.0)).sqrt()
    }
}

/// Puts the values of both tails where sorting would, which is all that the ends of an interval read.
fn sort_tails(values: &mut [f64], share: f64) {
    let count = values.len();
    let reach = (share * count as f64).ceil() as usize + 1;
    if 2 * reach >= count {
        return values.sort_unstable_by(f64::total_cmp);
    }
    values.select_nth_unstable_by(reach, f64::total_cmp);
    values[..reach].sort_unstable_by(f64::total_cmp);
    values[reach..].select_nth_unstable_by(count - 2 * reach, f64::total_cmp);
    values[count - reach..].sort_unstable_by(f64::total_cmp);
}

/// Iteratively reweighted mean; Huber's function is monotone, so there is one solution.
fn huber_location(values: &[f64], start: f64, scale: f64) -> f64 {
    let mut location = start;
    for _ in 0..100 {
        let (mut weighted, mut weights) = (0.0, 0.0);
        for value in values {
            let weight = (CORNER * scale / (value - location).abs()).min(1.0);
            weighted += weight * value;
            weights += weight;
        }
        let next = weighted / weights;
        let moved = (next - location).abs();
        location = next;
        if moved < 1e-6 * scale {
            break;
        }
    }
    location
}

/// Block length after Politis and White: long enough for the lags whose correlation stands out.
fn block_length(series: &[f64]) -> usize {
    let count = series.len();
    let length_max = (count / BLOCKS_MIN).max(1);
    let floor = (((count as f64).sqrt() / 2.0).round() as usize).clamp(1, length_max);
    let quiet_lags = 5.max((count as f64).log10().sqrt().ceil() as usize);
    let lag_max = ((count as f64).sqrt().ceil() as usize + quiet_lags).min(count - 1);
    let mean = series.iter().sum::<f64>() / count as f64;
    let covariance: Vec<f64> = (0..=lag_max)
        .map(|lag| {
            let products = series
                .iter()
                .zip(&series[lag..])
                .map(|(a, b)| (a - mean) * (b - mean));
            products.sum::<f64>() / count as f64
        })
        .collect();
    if covariance[0] <= 0.0 {
        return floor;
    }
    let noise = 2.0 * ((count as f64).log10() / count as f64).sqrt();
    let last_loud = (1..=lag_max)
        .rev()
        .find(|&lag| covariance[lag].abs() / covariance[0] > noise)
        .unwrap_or(0);
    let loud_until = (0..=last_loud)
        .find(|&start| {
            (start + 1..=start + quiet_lags)
                .all(|lag| lag > lag_max || covariance[lag].abs() / covariance[0] <= noise)
        })
        .unwrap_or(last_loud);
    let bandwidth = (2 * loud_until.max(1)).min(lag_max) as f64;
    let (mut spectrum, mut slope) = (covariance[0], 0.0);
    for (lag, value) in covariance
        .iter()
        .enumerate()
        .skip(1)
        .take(bandwidth as usize)
    {
        let flat_top = (2.0 * (1.0 - lag as f64 / bandwidth)).clamp(0.0, 1.0);
        spectrum += 2.0 * flat_top * value;
        slope += 2.0 * flat_top * lag as f64 * value;
    }
    if spectrum <= 0.0 {
        return floor;
    }
    let length = BLOCK_STRETCH * (1.5 * (slope / spectrum).powi(2) * count as f64).cbrt();
    (length.ceil() as usize).clamp(floor, length_max)
}

const GAUSS_975: f64 = 1.959_963_984_540_054;

/// 97.5 % quantile of Student's t by the Cornish-Fisher expansion: within 0.6 % from 4 degrees of
/// freedom, 0.8 % from 3, 3.2 % from 2.
pub(crate) fn student_975(degrees: f64) -> f64 {
    let z = GAUSS_975;
    let first = (z.powi(3) + z) / 4.0;
    let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0;
    let third = (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / 384.0;
    z + first / degrees + second / degrees.powi(2) + third / degrees.powi(3)
}

/// The step of the timer behind a set of samples, or zero if they do not repeat.
///
/// Samples on a lattice repeat; the smallest gap between distinct values then bounds the step. If
/// all samples are equal, the step is only known to be no larger than they are.
pub(crate) fn resolution(samples: &[f64]) -> f64 {
    let ascending = sorted(samples);
    // Gaps below a millionth are rounding errors of the unit conversion, not timer steps.
    let gaps: Vec<f64> = ascending
        .windows(2)
        .map(|pair| pair[1] - pair[0])
        .filter(|gap| *gap > 1e-6 * ascending[0])
        .collect();
    if 2 * (gaps.len() + 1) > samples.len() {
        return 0.0;
    }
    gaps.into_iter().fold(ascending[0], f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(count: usize, seed: u64) -> Vec<f64> {
        let mut random = Random::new(seed);
        let uniform = |random: &mut Random| random.next() as f64 / u64::MAX as f64;
        (0..count)
            .map(|_| (0..12).map(|_| uniform(&mut random)).sum::<f64>() - 6.0)
            .collect()
    }

    #[test]
    fn student_matches_tables() {
        for (degrees, expected) in [(4.0, 2.776), (7.0, 2.365), (19.0, 2.093), (1e9, 1.960)] {
            assert!(
                (student_975(degrees) / expected - 1.0).abs() < 0.006,
                "{degrees}"
            );
        }
    }

    #[test]
    fn location_ignores_outliers() {
        let mut values = noise(200, 1);
        let clean = Fit::new(&values, 0.0).location;
        for value in values.iter_mut().step_by(10) {
            *value += 1e6;
        }
        assert!((Fit::new(&values, 0.0).location - clean).abs() < 0.3);
    }

    #[test]
    fn block_grows_with_autocorrelation() {
        let white = noise(1000, 2);
        let mut state = 0.0;
        let slow: Vec<f64> = white
            .iter()
            .map(|value| {
                state = 0.9 * state + value;
                state
            })
            .collect();
        assert_eq!(Fit::new(&white, 0.0).block, 16);
        assert!(Fit::new(&slow, 0.0).block > 25);
        assert!(Fit::new(&slow, 0.0).half_width() > 3.0 * Fit::new(&white, 0.0).half_width());
    }

    #[test]
    fn quick_half_width_agrees_with_the_bootstrap() {
        let fit = Fit::new(&noise(300, 3), 0.0);
        let (low, high) = fit.interval(4000, 7);
        assert!((0.5 * (high - low) / fit.half_width() - 1.0).abs() < 0.1);
        assert!(low < fit.location && fit.location < high);
    }

    #[test]
    fn tails_are_where_sorting_puts_them() {
        for count in [1, 2, 5, 40, 41, 79, 100, 2000] {
            let mut tails = noise(count, 5);
            let whole = sorted(&tails);
            sort_tails(&mut tails, 0.025);
            for share in [0.0, 0.01, 0.025, 0.975, 0.99, 1.0] {
                assert_eq!(quantile(&tails, share), quantile(&whole, share), "{count}");
            }
        }
    }

    #[test]
    fn resolution_of_a_ticking_timer() {
        let ticks: Vec<f64> = (0..100).map(|i| 0.032 * f64::from(150 + i % 4)).collect();
        assert!((resolution(&ticks) - 0.032).abs() < 1e-9);
        assert_eq!(resolution(&noise(100, 4)), 0.0);
    }

    #[test]
    fn equal_ticks_are_not_taken_for_equal_times() {
        // 100 pairs without a difference on a timer with 10 % steps can hide 0.3 %.
        let fit = Fit::new(&[0.0; 100], 0.1);
        assert!((fit.half_width() - 0.003).abs() < 1e-12);
        assert_eq!(fit.interval(100, 1), (-fit.half_width(), fit.half_width()));
    }

    #[test]
    fn constant_series_has_a_location_and_no_width() {
        let fit = Fit::new(&[0.5; 20], 0.0);
        assert_eq!(fit.location, 0.5);
        assert!(fit.half_width() < 1e-12);
        assert_eq!(fit.interval(100, 1), (0.5, 0.5));
    }
}
