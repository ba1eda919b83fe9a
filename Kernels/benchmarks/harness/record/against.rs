//! Our contenders against every other one of the same race, and against the best of them.

use crate::{Best, ContenderKind, ResultFile, Row, RowKey, Speedup};
use stats::{paired_ratio_of_processes, verdict, ProcessSpread, RatioOptions, StatsError};
use std::collections::HashMap;

/// Layers that share a plan: a server plans once per step, for all of them.
const LAYERS: [f64; 2] = [1.0, 32.0];

/// By how much the high end of the lowest of several ratios moves up, for 0 to 7 that contest it:
/// the Gaussian quantile of 1 - 0.05 / candidates, over that of 0.975. Two candidates need nothing,
/// because the low end, the lowest of two, hardly ever errs.
const WIDEN: [f64; 8] = [1.0, 1.0, 1.086, 1.143, 1.187, 1.221, 1.250, 1.274];

impl Row {
    /// What to show of a row if only one ratio can be shown: ours against the best, others against
    /// their baseline.
    pub fn headline(&self) -> Option<&Speedup> {
        let best = self.against_best.as_ref().map(|best| &best.speedup);
        best.or(self.speedup.as_ref())
    }
}

/// How much faster `row` is than `other`, from the rounds of each process in which both have a
/// sample.
pub fn speedup_over(other: &Row, row: &Row, options: &RatioOptions) -> Result<Speedup, StatsError> {
    let ratio = paired_ratio_of_processes(&pairs(other, row), options)?;
    let mut speedup = Speedup {
        at_equal_clock: at_equal_clock(ratio.ratio, other, row),
        ..Speedup::new(&other.contender.name, &ratio)
    };
    speedup.ask_kernels(other, row, options);
    Ok(speedup)
}

/// A ratio of times as one of cycles.
fn at_equal_clock(ratio: f64, other: &Row, row: &Row) -> Option<f64> {
    let clock = |row: &Row| row.clocks.as_ref()?.median_mhz;
    Some(ratio * clock(other)? / clock(row)?)
}

/// The samples of two rows of one race, by process.
fn pairs(first: &Row, second: &Row) -> Vec<(Vec<f64>, Vec<f64>)> {
    let processes = first.samples_by_process().zip(second.samples_by_process());
    let paired = processes.map(|(first, second)| {
        let rounds = first.iter().zip(second);
        rounds
            .filter_map(|(first, second)| first.zip(*second))
            .unzip()
    });
    paired.collect()
}

/// How far apart the processes are in the ratios of our rows to the best; nothing of rows from one
/// process.
pub fn process_spreads(file: &ResultFile) -> Vec<ProcessSpread> {
    let rows: HashMap<RowKey, &Row> = file.rows.iter().map(|row| (RowKey::of(row), row)).collect();
    let several = file.rows.iter().filter(|row| row.processes() > 1);
    let spread = |row: &Row| {
        let best = &row.against_best.as_ref()?.speedup.baseline;
        let key = RowKey {
            contender: best.clone(),
            ..RowKey::of(row)
        };
        ProcessSpread::of(&pairs(rows.get(&key)?, row)).ok()
    };
    several.filter_map(spread).collect()
}

/// One of our rows against every other contender with a time among the rows of its race. A control
/// is not one: it is ours.
pub fn against_others(
    own: &Row,
    race: &[Row],
    options: &RatioOptions,
) -> Result<Vec<Speedup>, StatsError> {
    let others = race.iter().filter(|row| {
        let same = row.contender.name == own.contender.name;
        !same && row.time.is_some() && row.contender.kind != ContenderKind::Control
    });
    others
        .map(|other| speedup_over(other, own, options))
        .collect()
}

/// One of our rows against the fastest baseline of its race; none if no baseline has a time.
///
/// The fastest is the one with the lowest paired ratio, and that choice is uncertain too: the lowest
/// of several noisy numbers belongs to whoever was lucky. Candidates are all baselines whose time
/// over the fastest one's has an interval that reaches down to 1. The true ratio is that of one of
/// them, so the interval begins at the lowest of their low ends; it is at most that of the one
/// chosen, whose high end moves up for having been chosen among several.
pub fn against_best(
    own: &Row,
    race: &[Row],
    options: &RatioOptions,
) -> Result<Option<Best>, StatsError> {
    let mut duels = Vec::new();
    for row in race {
        if row.contender.kind == ContenderKind::Baseline && row.time.is_some() {
            duels.push((row, speedup_over(row, own, options)?));
        }
    }
    let lowest = duels
        .iter()
        .min_by(|(_, left), (_, right)| left.ratio.total_cmp(&right.ratio));
    let Some((fastest, speedup)) = lowest else {
        return Ok(None);
    };
    let mut best = Best {
        speedup: speedup.clone(),
        contested_by: Vec::new(),
        ratio_plan_1: with_plan(own, fastest, speedup.ratio, LAYERS[0]),
        ratio_plan_32: with_plan(own, fastest, speedup.ratio, LAYERS[1]),
    };
    for (row, duel) in &duels {
        let is_itself = row.contender.name == fastest.contender.name;
        if is_itself || speedup_over(row, fastest, options)?.low > 1.0 {
            continue;
        }
        best.contested_by.push(row.contender.name.clone());
        best.speedup.low = best.speedup.low.min(duel.low);
    }
    if !best.contested_by.is_empty() {
        let widen = WIDEN[best.contested_by.len().min(WIDEN.len() - 1)];
        best.speedup.high = speedup.ratio * (speedup.high / speedup.ratio).powf(widen);
        best.speedup.verdict = verdict(best.speedup.low, best.speedup.high, options.margin);
        best.speedup.ask_kernels(fastest, own, options);
    }
    Ok(Some(best))
}

/// Adds what files of older programs lack: our rows against the best. A race with too few rounds
/// stays without.
pub fn add_missing_best(file: &mut ResultFile) {
    let options = RatioOptions {
        margin: file.meta.protocol.margin,
        ..RatioOptions::default()
    };
    let lacks = |row: &Row| {
        let own = row.contender.kind == ContenderKind::Own;
        own && row.time.is_some() && row.against_best.is_none()
    };
    let mut races: HashMap<RowKey, Vec<usize>> = HashMap::new();
    if !file.rows.iter().any(lacks) {
        return;
    }
    for (index, row) in file.rows.iter().enumerate() {
        let mut key = RowKey::of(row);
        key.contender.clear();
        races.entry(key).or_default().push(index);
    }
    for places in races.into_values() {
        let race: Vec<Row> = places
            .iter()
            .map(|&place| file.rows[place].clone())
            .collect();
        for (&place, row) in places.iter().zip(&race) {
            if lacks(row) {
                file.rows[place].against_best =
                    against_best(row, &race, &options).unwrap_or_default();
            }
        }
    }
}

/// Their time over ours if each side adds its plan's share for a layer; none if neither plans.
fn with_plan(own: &Row, other: &Row, ratio: f64, layers: f64) -> Option<f64> {
    let (ours, theirs) = (own.plan_us(), other.plan_us());
    if ours.is_none() && theirs.is_none() {
        return None;
    }
    let own_us = own.time.as_ref()?.median_us;
    let share = |plan_us: Option<f64>| plan_us.unwrap_or(0.0) / layers;
    Some((ratio * own_us + share(theirs)) / (own_us + share(ours)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_samples::ok_row;
    use stats::Verdict;

    fn baseline(name: &str, scale: f64) -> Row {
        let mut row = ok_row("w", name, scale);
        row.contender.kind = ContenderKind::Baseline;
        row
    }

    #[test]
    fn the_best_is_the_fastest_baseline_and_others_are_kept_too() {
        let own = ok_row("w", "ours", 1.0);
        let mut race = vec![own.clone(), baseline("slow", 2.0), baseline("fast", 0.9)];
        let mut control = ok_row("w", "ours (again)", 0.5);
        control.contender.kind = ContenderKind::Control;
        let mut plain = ok_row("w", "plain", 0.1);
        plain.contender.kind = ContenderKind::Reference;
        race.extend([control, plain]);
        let options = RatioOptions::default();
        let all = against_others(&own, &race, &options).unwrap();
        let names: Vec<&str> = all.iter().map(|each| &*each.baseline).collect();
        assert_eq!(names, ["slow", "fast", "plain"]);
        let best = against_best(&own, &race, &options).unwrap().unwrap();
        assert_eq!(best.speedup.baseline, "fast");
        assert_eq!(best.speedup, all[1]);
        assert_eq!(best.speedup.verdict, Verdict::Slower);
        assert!(best.contested_by.is_empty() && best.ratio_plan_1.is_none());
        race.retain(|row| row.contender.kind != ContenderKind::Baseline);
        assert_eq!(against_best(&own, &race, &options), Ok(None));
    }

    /// Two baselines that take turns being faster: neither is the fastest beyond doubt.
    #[test]
    fn an_uncertain_choice_widens_the_interval() {
        let own = ok_row("w", "ours", 1.0);
        let mut race = vec![own.clone(), baseline("one", 1.2), baseline("two", 1.201)];
        for (round, sample) in race[2].samples_us.iter_mut().enumerate() {
            let factor = if round % 2 == 0 { 1.03 } else { 0.97 };
            *sample = sample.map(|time| time * factor);
        }
        let options = RatioOptions::default();
        let alone = speedup_over(&race[1], &own, &options).unwrap();
        let best = against_best(&own, &race, &options).unwrap().unwrap();
        assert_eq!(best.contested_by.len(), 1);
        assert!(best.speedup.high / best.speedup.low > alone.high / alone.low);
    }

    /// Four equal baselines, of which the luckiest is chosen: the truth is still in the interval.
    #[test]
    fn the_choice_does_not_bias_the_interval() {
        let mut state = 1u64;
        let mut noise = || {
            let mut uniform = || {
                state = state
                    .wrapping_mul(6364136223846793005)
                    .wrapping_add(1442695040888963407);
                (state >> 11) as f64 / (1u64 << 53) as f64
            };
            (0..12).map(|_| uniform()).sum::<f64>() - 6.0
        };
        let options = RatioOptions {
            resamples: 400,
            ..RatioOptions::default()
        };
        let runs = 400;
        let mut covered = 0;
        for _ in 0..runs {
            let mut race: Vec<Row> = ["a", "b", "c", "d"].map(|name| baseline(name, 1.0)).into();
            race.push(ok_row("w", "ours", 1.0));
            for row in &mut race {
                let samples = row.samples_us.iter_mut().flatten();
                samples.for_each(|sample| *sample = 100.0 * (0.01 * noise()).exp());
            }
            let own = race[4].clone();
            let best = against_best(&own, &race, &options).unwrap().unwrap();
            covered += usize::from(best.speedup.low <= 1.0 && 1.0 <= best.speedup.high);
        }
        assert!(covered >= runs * 93 / 100, "{covered} of {runs}");
    }

    #[test]
    fn a_plan_counts_as_much_as_its_layers_leave_of_it() {
        let mut own = ok_row("w", "ours", 1.0);
        let mut other = baseline("fast", 2.0);
        own.facts.insert("plan_us".into(), 320.into());
        let own_us = own.time.as_ref().unwrap().median_us;
        let options = RatioOptions::default();
        let best = |own: &Row, other: &Row| {
            let race = [own.clone(), other.clone()];
            against_best(own, &race, &options).unwrap().unwrap()
        };
        let planned = best(&own, &other);
        let expected = 2.0 * own_us / (own_us + 10.0);
        assert!((planned.ratio_plan_32.unwrap() / expected - 1.0).abs() < 1e-3);
        other.facts.insert("plan_us".into(), 1e9.into());
        assert!(best(&own, &other).ratio_plan_1.unwrap() > 1e6);
        other.facts.insert("planned_ahead".into(), false.into());
        assert_eq!(best(&own, &other).ratio_plan_1, planned.ratio_plan_1);
    }

    #[test]
    fn processes_are_compared_each_with_itself() {
        let options = RatioOptions::default();
        let split = |mut row: Row| {
            row.rounds_per_process = vec![20, 20, 20];
            row
        };
        let (own, other) = (ok_row("w", "ours", 1.0), baseline("fast", 1.1));
        let one = speedup_over(&other, &own, &options).unwrap();
        let three = speedup_over(&split(other), &split(own), &options).unwrap();
        assert_eq!(one.pairs, three.pairs);
        let mut file = crate::test_samples::file(crate::DeviceKind::Cuda);
        assert!(process_spreads(&file).is_empty());
        for row in file.rows.iter_mut().filter(|row| row.time.is_some()) {
            *row = split(row.clone());
        }
        assert_eq!(process_spreads(&file).len(), 3);
        assert!(three.high / three.low > one.high / one.low);
    }
}
