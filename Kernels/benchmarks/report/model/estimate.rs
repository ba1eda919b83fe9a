//! What a part of a step takes with each contender: as measured, or between two measured shapes.

use crate::choose::{candidates, near, Near, Question, Race, Shape};
use record::Row;
use std::collections::BTreeMap;

/// A time with the ends of its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    pub us: f64,
    pub low: f64,
    pub high: f64,
}

/// What is known about one part.
#[derive(Debug, Clone)]
pub struct Timed {
    pub by_contender: BTreeMap<String, Estimate>,
    pub fastest: String,
    /// How much faster the fastest is than each other one, from paired rounds: ratio, low, high. Only
    /// where the shape itself was measured.
    pub leads: BTreeMap<String, (f64, f64, f64)>,
    /// The workloads that it comes from: one, or two that it lies between.
    pub workloads: Vec<String>,
}

impl Timed {
    pub fn interpolated(&self) -> bool {
        self.workloads.len() > 1
    }
}

/// The first of the shapes that was measured, or that lies on a line between two measured ones; otherwise why not.
pub fn estimate(
    races: &[Race],
    op: &str,
    dtype: Option<&str>,
    shapes: &[String],
) -> Result<Timed, String> {
    let mut reasons = Vec::new();
    for shape in shapes {
        let question = Question { op, dtype, shape };
        let found = candidates(races, &question)
            .map_err(|error| error.to_string())
            .and_then(
                |candidates| match near(&candidates.shape, &candidates.races) {
                    Near::Same(races) => Ok(measured(races[0])),
                    Near::Between(races) => between(&candidates.shape, &races),
                    Near::Outside(races, why) => {
                        let nearest: Vec<String> =
                            races.iter().map(|race| race.workload()).collect();
                        Err(format!("{why}; nearest: {}", nearest.join(", ")))
                    }
                },
            );
        match found {
            Ok(timed) => return Ok(timed),
            Err(reason) => reasons.push(reason),
        }
    }
    Err(if reasons.is_empty() {
        "it has no shape".to_owned()
    } else {
        reasons.swap_remove(0)
    })
}

fn measured(race: &Race) -> Timed {
    let times = race.standings.iter();
    let leads = race.standings.iter().filter_map(|standing| {
        let behind = standing.behind.as_ref()?;
        Some((
            standing.name().to_owned(),
            (behind.ratio, behind.low, behind.high),
        ))
    });
    Timed {
        by_contender: times
            .map(|standing| (standing.name().to_owned(), median_interval(standing.row)))
            .collect(),
        fastest: race.winner().name().to_owned(),
        leads: leads.collect(),
        workloads: vec![race.workload()],
    }
}

/// On a line between two measured shapes, in logarithms: the time is taken to follow it, and to be somewhere
/// between the two for certain, as more work never takes less time.
fn between(shape: &Shape, races: &[&Race]) -> Result<Timed, String> {
    let line = pairs(races)
        .find_map(|(low, high)| Some((low, high, share(shape, &low.shape, &high.shape)?)));
    let Some((low, high, share)) = line else {
        let around: Vec<String> = races.iter().map(|race| race.workload()).collect();
        return Err(format!(
            "it is on no line between two measured shapes; around it: {}",
            around.join(", ")
        ));
    };
    let (below, above) = (measured(low), measured(high));
    let both = below.by_contender.iter().filter_map(|(name, below)| {
        let above = above.by_contender.get(name)?;
        let estimate = Estimate {
            us: below.us.powf(1.0 - share) * above.us.powf(share),
            low: below.low.min(above.low),
            high: below.high.max(above.high),
        };
        Some((name.clone(), estimate))
    });
    let by_contender: BTreeMap<String, Estimate> = both.collect();
    let fastest = by_contender
        .iter()
        .min_by(|left, right| left.1.us.total_cmp(&right.1.us));
    let fastest = fastest.map(|(name, _)| name.clone());
    Ok(Timed {
        fastest: fastest.ok_or("no contender has a time on both sides of it")?,
        by_contender,
        leads: BTreeMap::new(),
        workloads: [low, high].map(Race::workload).to_vec(),
    })
}

fn pairs<'r, 'a>(races: &'r [&'r Race<'a>]) -> impl Iterator<Item = (&'r Race<'a>, &'r Race<'a>)> {
    let all = move |low: &'r Race<'a>| races.iter().map(move |high| (low, *high));
    races.iter().flat_map(move |low| all(low))
}

/// How far along the line from `low` to `high` the shape is; none if it is not on it.
fn share(shape: &Shape, low: &Shape, high: &Shape) -> Option<f64> {
    let mut shares = Vec::new();
    for (axis, size) in &shape.sizes {
        let (low, high) = (low.sizes[axis], high.sizes[axis]);
        match low == high {
            true if *size == low => {}
            // With more of one size and less of another, the time may do anything.
            true => return None,
            false if low > high => return None,
            false => shares.push((size / low).ln() / (high / low).ln()),
        }
    }
    let first = *shares.first()?;
    let on_line =
        shares.iter().all(|share| (share - first).abs() < 1e-6) && (0.0..=1.0).contains(&first);
    on_line.then_some(first)
}

/// The median and its 95 % interval by order statistics, which needs no distribution.
fn median_interval(row: &Row) -> Estimate {
    let us = row.time.as_ref().map_or(f64::NAN, |time| time.median_us);
    let mut samples: Vec<f64> = row.samples_us.iter().flatten().copied().collect();
    samples.sort_by(f64::total_cmp);
    let (Some(first), Some(last)) = (samples.first(), samples.last()) else {
        return Estimate {
            us,
            low: us,
            high: us,
        };
    };
    let count = samples.len() as f64;
    let reach = 0.98 * count.sqrt();
    let (from, to) = (count / 2.0 - reach, count / 2.0 + reach);
    let low = if from < 1.0 {
        *first
    } else {
        samples[from as usize - 1]
    };
    let high = samples.get(to.ceil() as usize).unwrap_or(last);
    Estimate {
        us,
        low: low.min(us),
        high: high.max(us),
    }
}
