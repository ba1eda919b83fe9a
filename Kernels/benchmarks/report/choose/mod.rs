//! Which contender to use for an operation and a shape: measured, judged from the shapes around it, or unknown.

mod cpp;
mod near;
mod panel;
mod race;
mod shape;
mod table;

pub use cpp::to_cpp;
pub use near::{near, Near};
pub use panel::{panel, PANEL_SCRIPT};
pub use race::{races, Race, Standing};
pub use shape::Shape;
pub use table::{table, Rule, Table};

use crate::{ReportingError, View};
use record::{interval_text, ratio_text, time_us_text};
use std::collections::{BTreeMap, BTreeSet};

/// What is asked.
#[derive(Debug, Clone)]
pub struct Question<'a> {
    pub op: &'a str,
    /// May be left out if the operation was measured in one type only.
    pub dtype: Option<&'a str>,
    /// Axes with values, or the name of a workload.
    pub shape: &'a str,
}

/// One device's answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// None if the data cannot tell.
    pub contender: Option<String>,
    pub text: String,
}

/// The races of one operation and type, and the shape asked about among them.
pub struct Candidates<'r, 'a> {
    pub shape: Shape,
    /// Those that agree with it in everything but sizes.
    pub races: Vec<&'r Race<'a>>,
    /// Axes that were not given, and have one value only.
    pub assumed: Vec<String>,
}

pub fn choose(view: &View, question: &Question) -> Result<Answer, ReportingError> {
    let races = races(view);
    let candidates = candidates(&races, question)?;
    let mut answer = judged(&candidates);
    let (op, dtype) = candidates
        .races
        .first()
        .map_or((question.op, ""), |race| (race.op, race.dtype));
    let mut head = format!("{op} {dtype} {} on {}\n", candidates.shape, view.title);
    if !candidates.assumed.is_empty() {
        head += &format!(
            "  taken as, for lack of others: {}\n",
            candidates.assumed.join(", ")
        );
    }
    answer.text.insert_str(0, &head);
    Ok(answer)
}

/// Finds the races that a question is about; an error names what is missing or ambiguous in it.
pub fn candidates<'r, 'a>(
    races: &'r [Race<'a>],
    question: &Question,
) -> Result<Candidates<'r, 'a>, ReportingError> {
    let usage = |text: String| Err(ReportingError::Usage(text));
    let of_op: Vec<&Race> = races.iter().filter(|race| race.op == question.op).collect();
    if of_op.is_empty() {
        let ops: BTreeSet<&str> = races.iter().map(|race| race.op).collect();
        let ops: Vec<&str> = ops.into_iter().collect();
        return usage(format!(
            "'{}' has no time in these files; there are {}",
            question.op,
            ops.join(", ")
        ));
    }
    let dtypes: BTreeSet<&str> = of_op.iter().map(|race| race.dtype).collect();
    let dtype = match (question.dtype, dtypes.first()) {
        (Some(dtype), _) if dtypes.contains(dtype) => dtype,
        (None, Some(only)) if dtypes.len() == 1 => only,
        _ => {
            let dtypes: Vec<&str> = dtypes.into_iter().collect();
            return usage(format!(
                "{} was measured in {}: say which with --dtype",
                question.op,
                dtypes.join(", ")
            ));
        }
    };
    let of_type: Vec<&Race> = of_op
        .into_iter()
        .filter(|race| race.dtype == dtype)
        .collect();
    let named = |race: &&&Race| {
        race.workload() == question.shape || race.winner().row.workload.name == question.shape
    };
    if let Some(race) = of_type.iter().find(named) {
        let races = of_type
            .iter()
            .copied()
            .filter(|other| other.shape == race.shape);
        return Ok(Candidates {
            shape: race.shape.clone(),
            races: races.collect(),
            assumed: Vec::new(),
        });
    }
    let shapes: Vec<&Shape> = of_type.iter().map(|race| &race.shape).collect();
    let mut shape = Shape::asked(question.shape, &shapes)?;
    let mut assumed = Vec::new();
    let mut matching = of_type;
    // Given values first, so that what is left open is asked about among their races only.
    for (axis, value) in shape.exact.clone() {
        let known: BTreeSet<String> = matching
            .iter()
            .filter_map(|race| race.shape.exact.get(&axis))
            .cloned()
            .collect();
        matching.retain(|race| race.shape.exact.get(&axis) == Some(&value));
        if matching.is_empty() {
            let known: Vec<String> = known.into_iter().collect();
            return usage(format!(
                "{axis} {value} was not measured; there are {axis} {}",
                known.join(", ")
            ));
        }
    }
    let open: BTreeSet<String> = matching
        .iter()
        .flat_map(|race| race.shape.exact.keys())
        .cloned()
        .collect();
    for axis in open
        .into_iter()
        .filter(|axis| !shape.exact.contains_key(axis))
        .collect::<Vec<_>>()
    {
        // An axis that most shapes lack is an option: without it is the default.
        if matching
            .iter()
            .any(|race| !race.shape.exact.contains_key(&axis))
        {
            matching.retain(|race| !race.shape.exact.contains_key(&axis));
            continue;
        }
        let values: BTreeSet<&String> = matching
            .iter()
            .map(|race| &race.shape.exact[&axis])
            .collect();
        if values.len() > 1 {
            let values: Vec<&str> = values.into_iter().map(String::as_str).collect();
            return usage(format!(
                "{axis} is missing: there are {axis} {}",
                values.join(", ")
            ));
        }
        if let Some(value) = values.first().map(|value| value.to_string()) {
            assumed.push(format!("{axis}={value}"));
            shape.exact.insert(axis, value);
        }
    }
    let sizes: BTreeSet<&String> = matching
        .iter()
        .flat_map(|race| race.shape.sizes.keys())
        .collect();
    let missing: Vec<&str> = sizes
        .into_iter()
        .filter(|axis| !shape.sizes.contains_key(*axis))
        .map(String::as_str)
        .collect();
    matching.retain(|race| race.shape.sizes.keys().eq(shape.sizes.keys()));
    if matching.is_empty() {
        return usage(match missing.is_empty() {
            false => format!("the shape needs a value for {}", missing.join(", ")),
            true => format!(
                "no measured shape has just these sizes: {}",
                sizes_text(&shape)
            ),
        });
    }
    Ok(Candidates {
        shape,
        races: matching,
        assumed,
    })
}

/// The answer, without saying what it is about.
pub fn judged(candidates: &Candidates) -> Answer {
    match near(&candidates.shape, &candidates.races) {
        Near::Same(races) => measured(&races),
        Near::Between(races) => between(&races),
        Near::Outside(races, why) => Answer {
            contender: None,
            text: format!(
                "  cannot tell: {why}\n{}",
                listed("nearest measured", &races)
            ),
        },
    }
}

fn measured(races: &[&Race]) -> Answer {
    let mut text = String::new();
    for race in races {
        let winner = race.winner();
        text += &format!(
            "  use {}: {} us",
            winner.name(),
            time_us_text(winner.median_us)
        );
        text += &match race.runner_up() {
            None => ", the only contender with a time".to_owned(),
            Some(second) => lead_text(second),
        };
        text += &format!("; measured as {}\n", race.workload());
        let ties: Vec<&str> = race.leaders().skip(1).map(Standing::name).collect();
        if !ties.is_empty() {
            text += &format!("  near-tie: {} may be as fast\n", ties.join(", "));
        }
    }
    match common(races) {
        Some(contender) => Answer {
            contender: Some(contender),
            text,
        },
        None => Answer {
            contender: None,
            text: text + "  cannot tell: these races of one shape have different winners\n",
        },
    }
}

fn lead_text(second: &Standing) -> String {
    match &second.behind {
        Some(lead) => format!(
            ", {} {} times as fast as {} ({})",
            ratio_text(lead.ratio),
            interval_text(lead.low, lead.high),
            second.name(),
            lead.verdict
        ),
        None => format!(
            ", {} takes {} us (too few rounds for an interval)",
            second.name(),
            time_us_text(second.median_us)
        ),
    }
}

fn between(races: &[&Race]) -> Answer {
    let around = listed("between", races);
    match common(races) {
        Some(contender) => Answer {
            text: format!("  use {contender}: not measured, but it is among the fastest on all shapes around\n\
                 {around}"),
            contender: Some(contender),
        },
        None => Answer {
            contender: None,
            text: format!("  cannot tell: the fastest changes between the measured shapes around\n{around}"),
        },
    }
}

/// The contender that leads in all races, and wins most of them.
fn common(races: &[&Race]) -> Option<String> {
    let mut wins: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for race in races {
        for (place, leader) in race.leaders().enumerate() {
            let (led, won) = wins.entry(leader.name()).or_default();
            *led += 1;
            *won += usize::from(place == 0);
        }
    }
    let everywhere = wins.into_iter().filter(|(_, (led, _))| *led == races.len());
    let best = everywhere.max_by_key(|(_, (_, won))| *won)?;
    Some(best.0.to_owned())
}

fn listed(word: &str, races: &[&Race]) -> String {
    let line = |race: &&Race| {
        let leaders: Vec<&str> = race.leaders().map(Standing::name).collect();
        format!(
            "  {word}: {} ({}): {}\n",
            race.workload(),
            sizes_text(&race.shape),
            leaders.join(" or ")
        )
    };
    races.iter().map(line).collect()
}

fn sizes_text(shape: &Shape) -> String {
    let sizes: Vec<String> = shape
        .sizes
        .iter()
        .map(|(axis, size)| format!("{axis} {size}"))
        .collect();
    sizes.join(", ")
}
