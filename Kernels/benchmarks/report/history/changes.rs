//! Where a series changes its level, told from noise.
//!
//! Binary segmentation: the split with the largest weighted difference of means is a change if hardly any random
//! order of the same points has one as large (a permutation test, which needs no distribution); then both sides are
//! searched in turn. A point's weight is its own measurement error and the scatter from run to run, which successive
//! differences show whether or not there are steps. Runs that drift slowly are not in random order, and a drift is
//! reported as steps.

/// One run's value, in logarithms.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    pub log: f64,
    /// Standard deviation of its measurement.
    pub error: f64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    /// Index of the first point at the new level.
    pub at: usize,
    /// Logarithms of the levels.
    pub before: f64,
    pub after: f64,
    /// Share of random orders with a difference as large.
    pub p: f64,
}

/// With fewer runs, no order of them is rare enough.
pub const RUNS_MIN: usize = 10;
/// A level has at least this many points.
const LEVEL_MIN: usize = 3;
/// False alarms among unchanged series.
const ALPHA: f64 = 0.01;
const ORDERS: usize = 999;
/// Smaller changes do not matter, as in every verdict.
const MARGIN: f64 = 0.005;
/// No ratio is known better than this.
const ERROR_MIN: f64 = 1e-4;

/// All changes, in order.
pub fn changes(points: &[Point]) -> Vec<Change> {
    let scatter = scatter(points);
    let weighted = |point: &Point| {
        let variance = point.error.powi(2) + scatter.powi(2) + ERROR_MIN.powi(2);
        (point.log, 1.0 / variance)
    };
    let weighted: Vec<(f64, f64)> = points.iter().map(weighted).collect();
    let mut found = Vec::new();
    search(&weighted, 0, &mut found);
    found.sort_by_key(|(at, _)| *at);
    let ends: Vec<usize> = found
        .iter()
        .map(|(at, _)| *at)
        .chain([points.len()])
        .collect();
    let level = |from: usize, to: usize| mean(&weighted[from..to]);
    let change = |(index, (at, p)): (usize, &(usize, f64))| {
        let from = if index == 0 { 0 } else { ends[index - 1] };
        Change {
            at: *at,
            before: level(from, *at),
            after: level(*at, ends[index + 1]),
            p: *p,
        }
    };
    let all = found.iter().enumerate().map(change);
    all.filter(|change| (change.after - change.before).abs() >= MARGIN.ln_1p())
        .collect()
}

/// Standard deviation from run to run beyond the measurement errors, from successive differences: a step moves one
/// of them only.
fn scatter(points: &[Point]) -> f64 {
    let middle = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied().unwrap_or(0.0)
    };
    let apart = points
        .windows(2)
        .map(|pair| (pair[1].log - pair[0].log).abs())
        .collect();
    // The median of a Gaussian's absolute value is 0.6745 deviations; a difference has two errors.
    let seen = middle(apart) / (0.6745 * std::f64::consts::SQRT_2);
    let own = middle(points.iter().map(|point| point.error).collect());
    (seen.powi(2) - own.powi(2)).max(0.0).sqrt()
}

fn mean(points: &[(f64, f64)]) -> f64 {
    let (sum, weight) = points
        .iter()
        .fold((0.0, 0.0), |(sum, total), (log, weight)| {
            (sum + log * weight, total + weight)
        });
    sum / weight
}

/// Adds the changes inside a segment that starts at `offset`.
fn search(segment: &[(f64, f64)], offset: usize, found: &mut Vec<(usize, f64)>) {
    if segment.len() < RUNS_MIN {
        return;
    }
    let (at, seen) = best_split(segment);
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut shuffled = segment.to_vec();
    let mut as_large = 1;
    for _ in 0..ORDERS {
        shuffle(&mut shuffled, &mut random);
        as_large += usize::from(best_split(&shuffled).1 >= seen);
        // Too many already, whatever the other orders give.
        if as_large as f64 > ALPHA * (ORDERS + 1) as f64 {
            return;
        }
    }
    found.push((offset + at, as_large as f64 / (ORDERS + 1) as f64));
    search(&segment[..at], offset, found);
    search(&segment[at..], offset + at, found);
}

/// The split with the largest squared difference of means over its variance.
fn best_split(points: &[(f64, f64)]) -> (usize, f64) {
    let total = points.iter().fold((0.0, 0.0), |(sum, all), (log, weight)| {
        (sum + log * weight, all + weight)
    });
    let (mut sum, mut weight, mut best) = (0.0, 0.0, (LEVEL_MIN, 0.0));
    for (index, (log, own)) in points.iter().enumerate().take(points.len() - LEVEL_MIN) {
        (sum, weight) = (sum + log * own, weight + own);
        let right = (total.0 - sum, total.1 - weight);
        let difference = sum / weight - right.0 / right.1;
        let size = difference * difference / (1.0 / weight + 1.0 / right.1);
        if index + 1 >= LEVEL_MIN && size > best.1 {
            best = (index + 1, size);
        }
    }
    best
}

/// Fisher and Yates, with SplitMix64; the same points always give the same answer.
fn shuffle(points: &mut [(f64, f64)], state: &mut u64) {
    for last in (1..points.len()).rev() {
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = *state;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^= word >> 31;
        points.swap(
            last,
            ((u128::from(word) * (last as u128 + 1)) >> 64) as usize,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use report_testing::Noise;

    /// Runs with half a percent of noise, and a step somewhere.
    fn runs(noise: &mut Noise, count: usize, step: impl Fn(usize) -> f64) -> Vec<Point> {
        let point = |run| Point {
            log: step(run) + 0.005 * noise.gauss(),
            error: 0.002,
        };
        (0..count).map(point).collect()
    }

    #[test]
    fn noise_raises_an_alarm_in_one_series_of_a_hundred() {
        let mut noise = Noise::new(11);
        let alarms = (0..1000)
            .filter(|_| !changes(&runs(&mut noise, 30, |_| 0.0)).is_empty())
            .count();
        assert!((1..=18).contains(&alarms), "{alarms} of 1000");
    }

    #[test]
    fn a_step_of_two_percent_is_found_where_it_is() {
        let mut noise = Noise::new(12);
        let (mut found, mut near) = (0, 0);
        for _ in 0..200 {
            let steps = changes(&runs(
                &mut noise,
                30,
                |run| if run < 18 { 0.0 } else { -0.02 },
            ));
            found += usize::from(steps.iter().any(|change| change.after < change.before));
            near += usize::from(steps.iter().any(|change| change.at.abs_diff(18) <= 1));
        }
        assert!(
            found >= 195 && near >= 180,
            "{found} found, {near} in place, of 200"
        );
    }

    #[test]
    fn two_steps_are_two_changes_with_their_levels() {
        let mut noise = Noise::new(13);
        let steps = changes(&runs(&mut noise, 60, |run| match run {
            ..20 => 0.0,
            20..40 => 0.05,
            _ => 0.02,
        }));
        assert_eq!(steps.len(), 2, "{steps:?}");
        assert!(
            (steps[0].before, steps[0].after) < (0.01, 0.06)
                && (steps[0].after - 0.05).abs() < 0.005
        );
        assert!((steps[1].before - 0.05).abs() < 0.005 && (steps[1].after - 0.02).abs() < 0.005);
        assert!(steps.iter().all(|change| change.p <= ALPHA));
    }

    #[test]
    fn small_short_and_constant_series_have_no_change() {
        let mut noise = Noise::new(14);
        let clean = |run: usize| if run < 20 { 0.0 } else { 0.003 };
        let point = |log| Point { log, error: 0.0001 };
        let small: Vec<Point> = (0..40).map(|run| point(clean(run))).collect();
        assert!(changes(&small).is_empty(), "below the margin");
        assert!(changes(&runs(&mut noise, 9, |run| if run < 5 { 0.0 } else { 0.5 })).is_empty());
        assert!(changes(&[point(0.1); 50]).is_empty() && changes(&[]).is_empty());
    }
}
