//! What must hold between the fields of a result file, beyond their types.

use crate::{DeviceKind, Metrics, ResultFile, Row, Speedup, Status};

/// The first contradiction in a file, in words; run before every write and after every read.
pub fn check(file: &ResultFile) -> Result<(), String> {
    let meta = &file.meta;
    if (meta.device.kind == DeviceKind::Cuda) != meta.gpu.is_some() {
        return Err("meta.gpu must be present on a cuda device, and only there".to_owned());
    }
    if meta.complete && meta.ended_at.is_none() {
        return Err("meta.complete without meta.ended_at".to_owned());
    }
    for (index, row) in file.rows.iter().enumerate() {
        check_row(row, meta.protocol.verify).map_err(|problem| {
            let (op, workload, name) = (&row.op, &row.workload.name, &row.contender.name);
            format!("rows[{index}] ({op} {workload} {name}): {problem}")
        })?;
    }
    Ok(())
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
    check_numbers(row)
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
    refuse_unless_magnitudes("metrics", metrics.into_iter().flatten())?;
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
        refuse_unless_magnitudes("samples_us", row.samples_us.iter().flatten().copied())?;
    }
    refuse_unless_magnitudes("enqueue_us", row.enqueue_us)?;
    let kernels = row.kernel_us.iter().chain(&row.kernel_samples_us);
    refuse_unless_magnitudes("kernel_samples_us", kernels.copied())?;
    if row.kernel_us.is_some() == row.kernel_samples_us.is_empty() {
        return Err("kernel_us without kernel_samples_us, or the other way round".to_owned());
    }
    refuse_unless_magnitudes("dropped", row.dropped.iter().map(|sample| sample.time_us))
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
    if !(time.min_us > 0.0 && time.max_us.is_finite()) {
        return Err(format!("times from {} to {} us", time.min_us, time.max_us));
    }
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
        if !(speedup.low > 0.0 && speedup.high.is_finite() && ends.is_sorted()) {
            return Err(format!("speed-up interval out of order: {ends:?}"));
        }
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
