//! Turns outcomes into rows: statistics, metrics, speed-ups.

use std::collections::{BTreeMap, BTreeSet};

use contender::{Cost, Identity, Kind};
use record::{
    against_best, against_others, speedup_over, Budget, Clocks, ContenderKind, CrossCheck,
    DroppedSample, Errors, Metrics, Row, Status, Time,
};
use serde_json::Value;
use stats::{RatioOptions, StatsError, Summary};
use timing::{Roofs, Timing};

use crate::control;
use crate::erased::AnyProblem;
use crate::outcome::{Emulated, Measured, Outcome};

/// As a baseline: whichever is the fastest on a workload.
pub const BEST: &str = "best";

/// What the rows of a run have in common.
pub struct RowContext<'a> {
    pub arch: &'a str,
    pub roofs: &'a Roofs,
    /// The one requested, or [`BEST`]; otherwise the first baseline with a time.
    pub baseline: Option<&'a str>,
    pub ratio: RatioOptions,
    /// The workloads come from a file.
    pub given: bool,
}

/// The rows of one problem from one process, in the order of the contenders.
pub fn rows(
    problem: &AnyProblem,
    identities: &[&Identity],
    outcomes: &BTreeMap<String, Outcome>,
    context: &RowContext,
) -> Vec<Row> {
    identities
        .iter()
        .map(|identity| row(problem, identity, &outcomes[&identity.name], context))
        .collect()
}

/// Compares the rows of one problem with each other.
pub fn compare(rows: &mut [Row], context: &RowContext, repro: impl Fn(&[&str]) -> String) {
    let race = rows.to_vec();
    let against_best = context.baseline == Some(BEST);
    let mut timed = race.iter().filter(|row| row.status == Status::Ok);
    let is_baseline = |row: &&Row| row.contender.kind == ContenderKind::Baseline;
    let median_us = |row: &Row| {
        row.time
            .as_ref()
            .map_or(f64::INFINITY, |time| time.median_us)
    };
    let baseline = match context.baseline {
        Some(BEST) => timed
            .filter(is_baseline)
            .min_by(|left, right| median_us(left).total_cmp(&median_us(right))),
        Some(name) => timed.find(|row| row.contender.name == name),
        None => timed.find(is_baseline),
    };
    for row in rows {
        let name = row.contender.name.clone();
        let mut partners = vec![name.as_str()];
        let partner = match row.contender.kind {
            ContenderKind::Control => race.iter().find(|other| {
                other.status == Status::Ok && other.contender.name == control::original(&name)
            }),
            // Its rounds decide which one that is.
            ContenderKind::Own if against_best => None,
            _ => baseline.filter(|other| other.contender.name != name),
        };
        // A row that has failed is compared with nobody.
        if let Some(partner) = partner.filter(|_| !row.status.is_failure()) {
            partners.push(&partner.contender.name);
        }
        if row.status == Status::Ok {
            if let Err((other, error)) = compare_one(row, partner, &race, &context.ratio) {
                let warning = format!("no speed-up over {other}: {error}");
                row.warnings.push(warning);
            }
            if against_best && row.contender.kind == ContenderKind::Own {
                row.speedup = row.against_best.as_ref().map(|best| best.speedup.clone());
            }
        }
        let best = row.against_best.as_ref().map(|best| &best.speedup.baseline);
        let best = best.filter(|best| !partners.contains(&&***best));
        let best = best.cloned();
        partners.extend(best.as_deref());
        row.repro = repro(&partners);
    }
}

/// Adds the ratios of one row; an error names who it cannot be compared with.
fn compare_one<'a>(
    row: &mut Row,
    partner: Option<&'a Row>,
    race: &[Row],
    options: &RatioOptions,
) -> Result<(), (&'a str, StatsError)> {
    if let Some(partner) = partner {
        let failed = |error| (&*partner.contender.name, error);
        row.speedup = Some(speedup_over(partner, row, options).map_err(failed)?);
    }
    if row.contender.kind == ContenderKind::Own {
        let failed = |error| ("others", error);
        row.against = against_others(row, race, options).map_err(failed)?;
        row.against_best = against_best(row, race, options).map_err(failed)?;
    }
    let best = row.against_best.as_ref().map(|best| &best.speedup);
    let doubts = row.speedup.iter().chain(best);
    let doubts: BTreeSet<String> = doubts
        .filter_map(|speedup| speedup.doubt(options.margin))
        .collect();
    row.warnings.extend(doubts);
    Ok(())
}

fn row(problem: &AnyProblem, identity: &Identity, outcome: &Outcome, context: &RowContext) -> Row {
    let workload = problem.workload();
    let (status, reason) = status(outcome);
    let mut row = Row {
        op: problem.op().to_owned(),
        workload: record::Workload {
            name: workload.name.clone(),
            suite: workload.suite.clone(),
            provenance: workload.provenance.clone(),
            axes: workload.axes.clone(),
            weight: workload.weight,
            shape: context.given.then(|| workload.shape.clone()),
        },
        contender: record::Contender {
            name: identity.name.clone(),
            kind: match identity.kind {
                Kind::Own => ContenderKind::Own,
                Kind::Baseline => ContenderKind::Baseline,
                Kind::Reference => ContenderKind::Reference,
                Kind::Control => ContenderKind::Control,
            },
            version: identity.version.clone(),
            artifact_sha256: identity.artifact_sha256.clone(),
            libraries: identity.libraries.clone(),
            timed_region: identity.timed_region.clone(),
        },
        arch: context.arch.to_owned(),
        dtype: problem.dtype().to_string(),
        status,
        verified: false,
        inputs: Some(problem.inputs().to_owned()),
        also_right_on: Vec::new(),
        reference: None,
        checked_rounds: None,
        reason,
        errors: Vec::new(),
        time: None,
        samples_us: Vec::new(),
        rounds_per_process: vec![0],
        dropped: Vec::new(),
        enqueue_us: None,
        kernel_us: None,
        kernel_samples_us: Vec::new(),
        clocks: None,
        cross_check: None,
        metrics: Metrics::default(),
        speedup: None,
        against: Vec::new(),
        against_best: None,
        warnings: Vec::new(),
        facts: BTreeMap::new(),
        repro: String::new(),
    };
    match outcome {
        Outcome::Measured(measured) => {
            describe(&mut row, measured, &problem.cost(), context.roofs);
        }
        Outcome::Emulated(emulated) => {
            let Emulated {
                errors,
                also_right_on,
                reference,
                facts,
            } = &**emulated;
            row.verified = true;
            row.errors = errors.iter().map(report_errors).collect();
            row.also_right_on = also_right_on.clone();
            row.reference = Some(reference.clone());
            row.facts = facts.clone();
        }
        Outcome::Wrong { errors, .. } => row.errors = errors.iter().map(report_errors).collect(),
        _ => {}
    }
    row
}

fn status(outcome: &Outcome) -> (Status, Option<String>) {
    match outcome {
        Outcome::Unsupported(reason) => (Status::Unsupported, Some(reason.clone())),
        Outcome::Wrong { reason, .. } => (Status::Wrong, Some(reason.clone())),
        Outcome::Error(reason) => (Status::Error, Some(reason.clone())),
        Outcome::Timeout(reason) => (Status::Timeout, Some(reason.clone())),
        Outcome::Spoilt(reason) => (Status::Invalid, Some(reason.clone())),
        Outcome::Emulated(emulated) => {
            let fact = |name| emulated.facts.get(name);
            let how = match (
                fact("schedules").and_then(Value::as_array),
                fact("rewritten_for"),
            ) {
                (Some(schedules), _) => format!("PTX, {} schedules", schedules.len()),
                (None, Some(sm)) => format!("PTX rewritten for {}", sm.as_str().unwrap_or("?")),
                (None, None) => "PTX".to_owned(),
            };
            let words = format!("functionally correct under emulation ({how})");
            (Status::Emulated, Some(words))
        }
        Outcome::Measured(measured) => match &measured.validity.reason {
            Some(reason) => (Status::Invalid, Some(reason.clone())),
            None => (Status::Ok, None),
        },
    }
}

/// Adds the measurements. An invalid row keeps its samples as evidence but has no time.
fn describe(row: &mut Row, measured: &Measured, cost: &Cost, roofs: &Roofs) {
    let Measured {
        errors,
        verified,
        also_right_on,
        reference,
        facts,
        timing,
        energy_j,
        state,
        ..
    } = measured;
    row.errors = errors.iter().map(report_errors).collect();
    row.facts = facts.clone();
    row.samples_us = samples(timing);
    row.rounds_per_process = vec![timing.samples.len()];
    row.dropped = dropped(timing);
    row.enqueue_us = timing.median_enqueue_us();
    if let Some(traced) = &timing.traced {
        row.cross_check = Some(CrossCheck {
            event_us: traced.median_event_us(),
            activity_us: traced.median_activity_us(),
        });
        row.kernel_samples_us = traced.kernel_samples_us();
        row.kernel_us = traced.small.then(|| traced.median_activity_us());
    }
    row.clocks = Some(clocks(timing, state));
    if row.status != Status::Ok {
        return;
    }
    match Summary::of(&timing.kept_us()) {
        Ok(summary) => {
            row.verified = *verified;
            row.also_right_on = also_right_on.clone();
            row.reference = reference.clone();
            row.checked_rounds = verified.then_some(timing.checked_rounds);
            row.metrics = Metrics {
                energy_j: *energy_j,
                cycles: timing.median_clock_mhz().map(|mhz| summary.median * mhz),
                ..metrics(summary.median, cost, roofs)
            };
            row.time = Some(Time::new(&summary, timing.stop));
        }
        Err(error) => {
            row.status = Status::Invalid;
            row.reason = Some(error.to_string());
        }
    }
}

fn samples(timing: &Timing) -> Vec<Option<f64>> {
    timing
        .samples
        .iter()
        .map(|sample| (!sample.dropped).then_some(sample.elapsed_us))
        .collect()
}

fn dropped(timing: &Timing) -> Vec<DroppedSample> {
    let slow = timing
        .samples
        .iter()
        .enumerate()
        .filter(|(_, sample)| sample.dropped);
    slow.map(|(round, sample)| DroppedSample {
        round,
        time_us: sample.elapsed_us,
        clock_mhz: sample.clock_mhz,
        reason: "clock".into(),
    })
    .collect()
}

fn clocks(timing: &Timing, state: &device::DeviceState) -> Clocks {
    let seen: Vec<f64> = timing
        .samples
        .iter()
        .filter(|s| !s.dropped)
        .filter_map(|s| s.clock_mhz)
        .collect();
    let summary = Summary::of(&seen).ok();
    Clocks {
        reference_mhz: timing.reference_clock_mhz,
        median_mhz: summary.as_ref().map(|summary| summary.median),
        min_mhz: summary.as_ref().map(|summary| summary.min),
        max_mhz: summary.as_ref().map(|summary| summary.max),
        power_w: state.power_w,
        temperature_c: state.temperature_c,
        throttle_reasons: state.throttle_reasons.clone(),
    }
}

fn report_errors(errors: &gate::Errors) -> Errors {
    Errors {
        tensor: errors.tensor.clone(),
        sampled: errors.sampled as u64,
        max_abs: finite(errors.max_abs),
        p99_abs: finite(errors.p99_abs),
        rel_l2: finite(errors.rel_l2),
        budget: Budget {
            max_abs: errors.budget.max_abs,
            rel_l2: errors.budget.rel_l2,
        },
    }
}

fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

/// Rates at the median time, and the share of whichever roof is closer.
fn metrics(median_us: f64, cost: &Cost, roofs: &Roofs) -> Metrics {
    let tflops = cost.flops / (median_us * 1e6);
    let tbps = (cost.read_bytes + cost.written_bytes) / (median_us * 1e6);
    let memory = roofs
        .bandwidth_for(cost)
        .map(|roof| (tbps / roof.tbps, roof.name.clone()));
    let compute = roofs
        .peak_tflops(cost.math)
        .map(|roof| (tflops / roof, Roofs::math_name(cost.math)));
    let nearer = memory
        .into_iter()
        .chain(compute)
        .max_by(|a, b| a.0.total_cmp(&b.0));
    Metrics {
        tflops: Some(tflops),
        tbps: Some(tbps),
        roof_share: nearer.as_ref().map(|(share, _)| *share),
        roof: nearer.map(|(_, name)| name),
        queries_per_second: Some(1e6 / median_us),
        energy_j: None,
        cycles: None,
    }
}

#[cfg(test)]
mod tests;
