//! What must hold between the fields of a result file, beyond their types.

use crate::bounds::is_plain;
use crate::{DeviceKind, Metrics, ResultFile, Row, Speedup, Status};
use serde_json::Value;
use std::collections::BTreeSet;
use std::ops::RangeInclusive;

/// From a picosecond to eleven days.
const TIMES_US: RangeInclusive<f64> = 1e-6..=1e12;
/// Rates, shares and ratios, beyond what any machine reaches.
const RATES: RangeInclusive<f64> = 1e-18..=1e18;
/// Characters of a name.
pub(crate) const NAME_MAX: usize = 200;
/// Of a workload in a mean.
pub(crate) const WEIGHT_MAX: f64 = 1e9;
const AXES_MAX: usize = 64;
const LIST_MAX: usize = 4096;
/// Names of each sort in files that are read together: tables and plots grow with their product.
const CONTENDERS_MAX: usize = 64;
const OPS_MAX: usize = 256;
const DEVICES_MAX: usize = 64;
const RUNS_MAX: usize = 4096;

/// The first contradiction in a file, in words; run before every write and after every read.
pub fn check(file: &ResultFile) -> Result<(), String> {
    let meta = &file.meta;
    if (meta.device.kind == DeviceKind::Cuda) != meta.gpu.is_some() {
        return Err("meta.gpu must be present on a cuda device, and only there".to_owned());
    }
    if meta.complete && meta.ended_at.is_none() {
        return Err("meta.complete without meta.ended_at".to_owned());
    }
    let names = [
        &meta.device.name,
        &meta.device.arch,
        &meta.build.arch,
        &meta.program,
    ];
    refuse_unless_names(names.into_iter())?;
    let lists = [
        meta.roofs.len(),
        meta.warnings.len(),
        meta.argv.len(),
        meta.libraries.len(),
    ];
    refuse_unless_short("meta", lists)?;
    refuse_unless_within(
        "meta.roofs",
        meta.roofs.iter().map(|roof| roof.value),
        &RATES,
    )?;
    refuse_unless_within("meta.spent_s", meta.spent_s.values().copied(), &RATES)?;
    check_together(&[file])?;
    for (index, row) in file.rows.iter().enumerate() {
        check_row(row, meta.protocol.verify).map_err(|problem| {
            let (op, workload, name) = (&row.op, &row.workload.name, &row.contender.name);
            // A name may be what is wrong.
            let row = format!("{op} {workload} {name}").replace(['\n', '\t'], " ");
            format!("rows[{index}] ({row}): {problem}")
        })?;
    }
    Ok(())
}

/// What must hold for files that a command reads together: few enough devices, operations and
/// contenders that a table of all against all stays a table.
pub fn check_together(files: &[&ResultFile]) -> Result<(), String> {
    let rows = || files.iter().flat_map(|file| &file.rows);
    let most = |what: &str, found: usize, most: usize| match found <= most {
        true => Ok(()),
        false => Err(format!(
            "{found} {what}, but at most {most} fit into a report"
        )),
    };
    most("runs", files.len(), RUNS_MAX)?;
    let devices: BTreeSet<&str> = files.iter().map(|file| &*file.meta.device.name).collect();
    most("devices", devices.len(), DEVICES_MAX)?;
    let ops: BTreeSet<(&str, &str)> = rows().map(|row| (&*row.op, &*row.dtype)).collect();
    most("operations", ops.len(), OPS_MAX)?;
    let contenders: BTreeSet<&str> = rows().map(|row| &*row.contender.name).collect();
    most("contenders", contenders.len(), CONTENDERS_MAX)
}

/// The row, or, if it contradicts itself, an `error` row that says how: a bug in one row must not
/// cost the whole file. `verify` comes from the run's protocol.
pub fn sound(row: Row, verify: bool) -> Row {
    let Err(problem) = check_row(&row, verify) else {
        return row;
    };
    Row {
        status: Status::Error,
        verified: false,
        also_right_on: Vec::new(),
        reference: None,
        checked_rounds: None,
        reason: Some(format!(
            "the harness produced a row that contradicts itself: {problem}"
        )),
        errors: Vec::new(),
        time: None,
        samples_us: Vec::new(),
        rounds_per_process: Vec::new(),
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
        ..row
    }
}

fn check_row(row: &Row, verify: bool) -> Result<(), String> {
    if row.status == Status::Ok {
        check_times(row)?;
        if row.verified != verify {
            return Err("ok rows are verified unless the whole run skips verification".to_owned());
        }
    } else {
        if row.reason.as_deref().unwrap_or("").is_empty() {
            return Err(format!("status {} without a reason", row.status));
        }
        if row.time.is_some() || speedups(row).next().is_some() {
            return Err(format!("status {} with a time or a speed-up", row.status));
        }
        if row.verified != (row.status == Status::Emulated) {
            let which = if row.verified { "but" } else { "and not" };
            return Err(format!("status {} {which} verified", row.status));
        }
    }
    let weight = row.workload.weight.unwrap_or(1.0);
    if !(weight > 0.0 && weight <= WEIGHT_MAX) {
        return Err(format!("a weight of {weight}"));
    }
    check_names(row)?;
    check_numbers(row)
}

fn check_names(row: &Row) -> Result<(), String> {
    let workload = &row.workload;
    let names = [
        &row.op,
        &row.arch,
        &row.dtype,
        &workload.name,
        &workload.suite,
        &row.contender.name,
        &row.contender.version,
    ];
    let shape = || workload.shape.iter().flatten();
    let axes = || workload.axes.iter().chain(shape());
    refuse_unless_names(names.into_iter().chain(axes().map(|(name, _)| name)))?;
    let count = axes().count();
    if count > AXES_MAX {
        return Err(format!("{count} axes, but at most {AXES_MAX} make a shape"));
    }
    // A number, a word, or one level of them.
    let scalar = |value: &Value| !value.is_array() && !value.is_object();
    let flat = |value: &Value| match value {
        Value::Array(values) => values.len() <= LIST_MAX && values.iter().all(scalar),
        other => scalar(other),
    };
    if let Some((name, _)) = axes().find(|(_, value)| !flat(value)) {
        return Err(format!(
            "axis {name} is neither a value nor a list of values"
        ));
    }
    let lists = [
        row.errors.len(),
        row.against.len(),
        row.warnings.len(),
        row.contender.libraries.len(),
        row.also_right_on.len(),
    ];
    refuse_unless_short("the row", lists)
}

fn refuse_unless_names<'a>(names: impl Iterator<Item = &'a String>) -> Result<(), String> {
    for name in names {
        if !name.chars().all(is_plain) {
            return Err(format!("the name {name:?} has more than one line"));
        }
        if name.chars().count() > NAME_MAX {
            let start: String = name.chars().take(20).collect();
            return Err(format!(
                "the name '{start}...' is longer than {NAME_MAX} characters"
            ));
        }
    }
    Ok(())
}

fn refuse_unless_short(what: &str, lengths: impl IntoIterator<Item = usize>) -> Result<(), String> {
    match lengths.into_iter().find(|length| *length > LIST_MAX) {
        Some(length) => Err(format!("{what} has a list of {length} entries")),
        None => Ok(()),
    }
}

/// JSON has no infinity and no NaN; they would turn into null, which reads as "not measured".
fn check_numbers(row: &Row) -> Result<(), String> {
    let Metrics {
        tflops,
        tbps,
        roof_share,
        queries_per_second,
        energy_j,
        cycles,
        ..
    } = row.metrics;
    let metrics = [
        tflops,
        tbps,
        roof_share,
        queries_per_second,
        energy_j,
        cycles,
    ];
    refuse_unless_within("metrics", metrics.into_iter().flatten(), &RATES)?;
    for errors in &row.errors {
        let values = [errors.max_abs, errors.p99_abs, errors.rel_l2]
            .into_iter()
            .flatten();
        let budget = [errors.budget.max_abs, errors.budget.rel_l2];
        refuse_unless_magnitudes(
            &format!("errors of {}", errors.tensor),
            values.chain(budget),
        )?;
    }
    if row.status == Status::Ok {
        let samples = row.samples_us.iter().flatten();
        refuse_unless_within("samples_us", samples.copied(), &TIMES_US)?;
    }
    refuse_unless_within("enqueue_us", row.enqueue_us, &TIMES_US)?;
    let kernels = row.kernel_us.iter().chain(&row.kernel_samples_us);
    refuse_unless_within("kernel_samples_us", kernels.copied(), &TIMES_US)?;
    if let Some(both) = &row.cross_check {
        refuse_unless_within("cross_check", [both.event_us, both.activity_us], &TIMES_US)?;
    }
    if let Some(clocks) = &row.clocks {
        let mhz = [
            clocks.reference_mhz,
            clocks.median_mhz,
            clocks.min_mhz,
            clocks.max_mhz,
        ];
        let state = mhz
            .into_iter()
            .chain([clocks.power_w, clocks.temperature_c]);
        refuse_unless_within("clocks", state.flatten(), &RATES)?;
    }
    if row.kernel_us.is_some() == row.kernel_samples_us.is_empty() {
        return Err("kernel_us without kernel_samples_us, or the other way round".to_owned());
    }
    let dropped = row.dropped.iter().map(|sample| sample.time_us);
    refuse_unless_within("dropped", dropped, &TIMES_US)
}

/// Zero, or within bounds.
fn refuse_unless_within(
    what: &str,
    values: impl IntoIterator<Item = f64>,
    bounds: &RangeInclusive<f64>,
) -> Result<(), String> {
    let odd = |value: &f64| *value != 0.0 && !bounds.contains(value);
    match values.into_iter().find(odd) {
        Some(value) => Err(format!("{what}: {value:e} cannot have been measured")),
        None => Ok(()),
    }
}

fn refuse_unless_magnitudes(
    what: &str,
    values: impl IntoIterator<Item = f64>,
) -> Result<(), String> {
    match values
        .into_iter()
        .find(|value| !(value.is_finite() && *value >= 0.0))
    {
        Some(value) => Err(format!("{what}: {value} is negative or not finite")),
        None => Ok(()),
    }
}

fn check_times(row: &Row) -> Result<(), String> {
    let Some(time) = &row.time else {
        return Err("status ok without a time".to_owned());
    };
    let ladder = [
        time.min_us,
        time.p5_us,
        time.median_us,
        time.p95_us,
        time.p99_us,
        time.max_us,
    ];
    if !(TIMES_US.contains(&time.min_us) && TIMES_US.contains(&time.max_us)) {
        return Err(format!(
            "times from {:e} to {:e} us",
            time.min_us, time.max_us
        ));
    }
    let spreads = [Some(time.mean_us), time.std_us, Some(time.mad_us)];
    refuse_unless_within(
        "time",
        spreads.into_iter().flatten(),
        &(0.0..=*TIMES_US.end()),
    )?;
    if !ladder.windows(2).all(|pair| pair[0] <= pair[1]) {
        return Err(format!("time quantiles out of order: {ladder:?}"));
    }
    let kept = row.samples_us.iter().flatten().count();
    if kept != time.count {
        return Err(format!(
            "time.count is {} but samples_us holds {kept}",
            time.count
        ));
    }
    let rounds: usize = row.rounds_per_process.iter().sum();
    if !row.rounds_per_process.is_empty() && rounds != row.samples_us.len() {
        return Err(format!(
            "rounds_per_process add up to {rounds} but samples_us has {}",
            row.samples_us.len()
        ));
    }
    for speedup in speedups(row) {
        let ends = [speedup.low, speedup.ratio, speedup.high];
        if !(RATES.contains(&speedup.low) && RATES.contains(&speedup.high) && ends.is_sorted()) {
            return Err(format!("speed-up interval out of order: {ends:?}"));
        }
        let others = [speedup.at_equal_clock, speedup.of_kernels];
        refuse_unless_within("speed-up", others.into_iter().flatten(), &RATES)?;
        if speedup.baseline == row.contender.name {
            return Err("speed-up against itself".to_owned());
        }
    }
    Ok(())
}

fn speedups(row: &Row) -> impl Iterator<Item = &Speedup> {
    let best = row.against_best.iter().map(|best| &best.speedup);
    row.speedup.iter().chain(&row.against).chain(best)
}
