//! Whether a new run is slower than an old one, as opposed to noisy.
//!
//! A contender whose baseline (an external library at the same version) is in both runs is compared
//! by its speed-ups, in which machine and day cancel. Other rows are compared by their times, minus
//! the drift of the unchanged baselines if there are enough of them.
//!
//! The interval of a change covers three errors: that of each run, and the run-to-run spread shown
//! by the rows themselves. It is wide enough that all rows together raise a false alarm in one
//! comparison out of a hundred (Bonferroni).

use crate::environment::cards;
use crate::noise::{normal_quantile, spread_between_runs};
use crate::{differences, Collection, ReportingError};
use record::{Contender, ContenderKind, Meta, Row, RowKey, Status};
use stats::{paired_ratio, quantile, RatioOptions, Verdict, SPREAD_BETWEEN_CARDS};
use std::collections::{BTreeMap, HashMap};

/// Probability that comparing two runs of the same code finds any row slower.
const FALSE_ALARM: f64 = 0.01;
/// Minimum rows to estimate the run-to-run spread; with fewer it is assumed.
const ROWS_TO_LEARN: usize = 8;
/// Minimum unchanged baselines to estimate the machine's drift.
const CONTROLS_MIN: usize = 3;
/// Standard deviation of a change between two cards: each run has one.
const BETWEEN_CARDS: f64 = SPREAD_BETWEEN_CARDS * std::f64::consts::SQRT_2;
/// Two-sided 95 % of a Gaussian.
const Z95: f64 = 1.959_964;

#[derive(Debug, Clone, Copy)]
pub struct CompareOptions {
    /// The slow-down to detect. Less than half of it is never reported, because measurements of a
    /// true change at the threshold fall on either side of it.
    pub threshold: f64,
    /// Allow runs of different devices.
    pub across_devices: bool,
}

/// How two rows were compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Method {
    /// By their speed-ups over this unchanged baseline.
    Paired(String),
    /// By their times.
    Direct,
}

#[derive(Debug, Clone)]
pub struct Change {
    pub key: RowKey,
    pub method: Method,
    pub base_us: f64,
    pub new_us: f64,
    /// New time over old time; above 1 is slower.
    pub ratio: f64,
    pub low: f64,
    pub high: f64,
    pub verdict: Verdict,
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, Default)]
pub struct Comparison {
    /// Slowest first.
    pub changes: Vec<Change>,
    /// Rows that had a time and now fail, with the reason.
    pub broken: Vec<(RowKey, String)>,
    /// Rows that failed and now have a time.
    pub mended: Vec<RowKey>,
    /// Rows of one side only.
    pub missing: Vec<RowKey>,
    pub added: Vec<RowKey>,
    pub environment: Vec<String>,
    /// Drift of the unchanged baselines (new over old), subtracted from direct changes.
    pub drift: Option<f64>,
    /// How many speed-ups of unchanged contenders over unchanged baselines repeat.
    pub agreement: Agreement,
    /// The run-to-run standard deviations used.
    pub spread_paired: f64,
    pub spread_direct: f64,
    pub threshold: f64,
}

/// Nothing in it is learned from the comparison itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Agreement {
    pub all: usize,
    /// Within the two runs' own 95 % intervals.
    pub here: usize,
    /// Within these and what another card may change.
    pub elsewhere: usize,
}

impl Comparison {
    pub fn count(&self, verdict: Verdict) -> usize {
        let of = |change: &&Change| change.verdict == verdict;
        self.changes.iter().filter(of).count()
    }
}

type Files = BTreeMap<String, String>;
type Side<'a> = HashMap<RowKey, (&'a Meta, &'a Row)>;

/// A change in logarithms, before the run-to-run noise is known.
struct Raw<'a> {
    key: RowKey,
    base: &'a Row,
    new: &'a Row,
    method: Method,
    change: f64,
    error: f64,
}

pub fn compare(
    base: &Collection,
    new: &Collection,
    options: &CompareOptions,
) -> Result<Comparison, ReportingError> {
    let (base_rows, new_rows) = (side(base), side(new));
    let mut found = Comparison {
        environment: differences(base, new),
        threshold: options.threshold,
        ..Comparison::default()
    };
    let mut raw = Vec::new();
    let mut keys: Vec<&RowKey> = base_rows.keys().collect();
    keys.sort();
    for key in keys {
        let (base_meta, base_row) = base_rows[key];
        let Some((new_meta, new_row)) = new_rows.get(key).copied() else {
            found.missing.push(key.clone());
            continue;
        };
        comparable(base_meta, new_meta, options)?;
        match (base_row.status, new_row.status) {
            (Status::Ok, Status::Ok) => {
                raw.push(raw_change(key, base_row, new_row, &base_rows, &new_rows));
            }
            (Status::Ok, status) => {
                let reason = new_row.reason.as_deref().unwrap_or_default();
                found
                    .broken
                    .push((key.clone(), format!("{status}: {reason}")));
            }
            (_, Status::Ok) => found.mended.push(key.clone()),
            _ => {}
        }
    }
    let mut added: Vec<&RowKey> = new_rows
        .keys()
        .filter(|key| !base_rows.contains_key(*key))
        .collect();
    added.sort();
    found.added = added.into_iter().cloned().collect();
    if raw.is_empty() && found.broken.is_empty() {
        return Err(ReportingError::Usage(
            "the two sides have no row in common; rows match by op, dtype, suite, workload, axes and \
             contender"
                .to_owned(),
        ));
    }
    let between_cards = match cards(base) == cards(new) {
        true => 0.0,
        false => BETWEEN_CARDS,
    };
    judge(raw, options, between_cards, &mut found);
    Ok(found)
}

/// The rows of all runs; a later run's row replaces an earlier one's.
fn side(collection: &Collection) -> Side<'_> {
    let mut runs: Vec<_> = collection.runs.iter().map(|run| &run.file).collect();
    runs.sort_by(|left, right| left.meta.started_at.cmp(&right.meta.started_at));
    let rows = runs
        .into_iter()
        .flat_map(|file| file.rows.iter().map(move |row| (&file.meta, row)));
    rows.map(|(meta, row)| (RowKey::of(row), (meta, row)))
        .collect()
}

fn comparable(base: &Meta, new: &Meta, options: &CompareOptions) -> Result<(), ReportingError> {
    if base.device.name != new.device.name && !options.across_devices {
        return Err(ReportingError::Usage(format!(
            "base ran on '{}', new on '{}'; regressions are changes on one device \
            (--across-devices compares anyway)",
            base.device.name, new.device.name
        )));
    }
    let how = |meta: &Meta| {
        let protocol = &meta.protocol;
        let steady = protocol.steady_ms.is_some();
        (protocol.cache, protocol.launch, protocol.timer, steady)
    };
    if how(base) != how(new) {
        return Err(ReportingError::Usage(format!(
            "base was measured with {:?}, new with {:?} (cache, launch, timer, steady); measure both the same way",
            how(base),
            how(new)
        )));
    }
    Ok(())
}

fn raw_change<'a>(
    key: &RowKey,
    base: &'a Row,
    new: &'a Row,
    base_rows: &Side,
    new_rows: &Side,
) -> Raw<'a> {
    let (method, change, error) = paired(key, base, new, base_rows, new_rows)
        .or_else(|| direct(base, new))
        .unwrap_or((Method::Direct, medians(base, new), f64::INFINITY));
    Raw {
        key: key.clone(),
        base,
        new,
        method,
        change,
        error,
    }
}

fn medians(base: &Row, new: &Row) -> f64 {
    let median = |row: &Row| row.time.as_ref().map_or(f64::NAN, |time| time.median_us);
    (median(new) / median(base)).ln()
}

/// By the speed-ups over a baseline that is the same in both runs.
fn paired(
    key: &RowKey,
    base: &Row,
    new: &Row,
    base_rows: &Side,
    new_rows: &Side,
) -> Option<(Method, f64, f64)> {
    let (old, now) = (base.speedup.as_ref()?, new.speedup.as_ref()?);
    let partner = RowKey {
        contender: old.baseline.clone(),
        ..key.clone()
    };
    let (_, old_partner) = base_rows.get(&partner)?;
    let (_, new_partner) = new_rows.get(&partner)?;
    let unchanged = old.baseline == now.baseline
        && old_partner.contender.kind != ContenderKind::Own
        && old_partner.contender == new_partner.contender;
    let error = |low: f64, high: f64| (high / low).ln() / (2.0 * Z95);
    unchanged.then(|| {
        (
            Method::Paired(old.baseline.clone()),
            (old.ratio / now.ratio).ln(),
            error(old.low, old.high).hypot(error(now.low, now.high)),
        )
    })
}

/// By the samples of both runs. Rounds of different runs are not pairs, but any pairing of
/// independent series has the right location and spread, and the block bootstrap handles
/// autocorrelation.
fn direct(base: &Row, new: &Row) -> Option<(Method, f64, f64)> {
    let kept = |row: &Row| {
        row.samples_us
            .iter()
            .flatten()
            .copied()
            .collect::<Vec<f64>>()
    };
    let (old, now) = (kept(base), kept(new));
    let count = old.len().min(now.len());
    let ratio = paired_ratio(&now[..count], &old[..count], &RatioOptions::default()).ok()?;
    Some((
        Method::Direct,
        ratio.ratio.ln(),
        (ratio.high / ratio.low).ln() / (2.0 * Z95),
    ))
}

fn is_control(raw: &Raw) -> bool {
    raw.method == Method::Direct
        && raw.base.contender.kind != ContenderKind::Own
        && raw.base.contender == raw.new.contender
        && raw.error.is_finite()
}

fn judge(raw: Vec<Raw>, options: &CompareOptions, between_cards: f64, found: &mut Comparison) {
    let mut controls: Vec<f64> = raw
        .iter()
        .filter(|raw| is_control(raw))
        .map(|raw| raw.change)
        .collect();
    controls.sort_by(f64::total_cmp);
    let drift = (controls.len() >= CONTROLS_MIN).then(|| quantile(&controls, 0.5));
    found.drift = drift.map(f64::exp);
    let repeated = raw
        .iter()
        .filter(|raw| raw.method != Method::Direct && raw.base.contender == raw.new.contender);
    for raw in repeated {
        let within = |spread: f64| raw.change.abs() <= Z95 * raw.error.hypot(spread);
        found.agreement.all += 1;
        found.agreement.here += usize::from(within(0.0));
        found.agreement.elsewhere += usize::from(within(BETWEEN_CARDS));
    }
    let spread = |paired: bool, floor: f64, assumed: f64| {
        let changes: Vec<(f64, f64)> = raw
            .iter()
            .filter(|raw| (raw.method != Method::Direct) == paired && raw.error.is_finite())
            .map(|raw| (raw.change, raw.error))
            .collect();
        match changes.len() >= ROWS_TO_LEARN {
            true => spread_between_runs(&changes).max(floor),
            false => assumed,
        }
    };
    // Floors and defaults: a paired ratio repeats within 0.1 % on a quiet card, a time within 0.2 %;
    // half as much again if there are too few rows to estimate this machine's spread, and more if there
    // are two machines.
    found.spread_paired = spread(true, 0.001, between_cards.max(0.0015));
    found.spread_direct = spread(false, 0.002, between_cards.max(0.003));
    let z = normal_quantile(1.0 - FALSE_ALARM / 2.0 / raw.len().max(1) as f64);
    for raw in raw {
        let (between, drift) = match raw.method {
            Method::Direct => (found.spread_direct, drift.unwrap_or(0.0)),
            Method::Paired(_) => (found.spread_paired, 0.0),
        };
        let change = raw.change - drift;
        let half = z * raw.error.hypot(between);
        let (low, high) = ((change - half).exp(), (change + half).exp());
        let mut verdict = verdict(change.exp(), low, high, options.threshold);
        let notes = notes(&raw, options, &mut verdict);
        let median = |row: &Row| row.time.as_ref().map_or(f64::NAN, |time| time.median_us);
        found.changes.push(Change {
            base_us: median(raw.base),
            new_us: median(raw.new),
            ratio: change.exp(),
            low,
            high,
            verdict,
            notes,
            key: raw.key,
            method: raw.method,
        });
    }
    let slowest_first = |left: &Change, right: &Change| right.ratio.total_cmp(&left.ratio);
    found.changes.sort_by(slowest_first);
}

fn verdict(ratio: f64, low: f64, high: f64, threshold: f64) -> Verdict {
    let half = 1.0 + threshold / 2.0;
    if low > 1.0 && ratio >= half {
        Verdict::Slower
    } else if high < 1.0 && ratio <= 1.0 / half {
        Verdict::Faster
    } else if low > 1.0 / (1.0 + threshold) && high < 1.0 + threshold {
        Verdict::Same
    } else {
        Verdict::Ambiguous
    }
}

/// The files of every library that both contenders loaded.
fn loaded<'a>(
    base: &'a Contender,
    new: &'a Contender,
) -> impl Iterator<Item = (&'a str, (&'a Files, &'a Files))> {
    base.libraries.iter().filter_map(|old| {
        let now = new.libraries.iter().find(|now| now.name == old.name)?;
        Some((old.name.as_str(), (&old.files, &now.files)))
    })
}

/// What else changed for a row. Times that moved with the clock say nothing about the code.
fn notes(raw: &Raw, options: &CompareOptions, verdict: &mut Verdict) -> Vec<String> {
    let mut notes = Vec::new();
    let (base, new) = (&raw.base.contender, &raw.new.contender);
    if base.version != new.version {
        notes.push(format!("version {} -> {}", base.version, new.version));
    } else if base.artifact_sha256 != new.artifact_sha256 {
        notes.push("different artifact of the same version".to_owned());
    }
    for (name, (old, now)) in loaded(base, new) {
        if old != now {
            notes.push(format!("different bytes of {name}"));
        }
    }
    let clock = |row: &Row| row.clocks.as_ref().and_then(|clocks| clocks.median_mhz);
    if let (Some(old), Some(now)) = (clock(raw.base), clock(raw.new)) {
        if (now / old).ln().abs() > options.threshold / 2.0 {
            notes.push(format!("clock {old:.0} -> {now:.0} MHz"));
            let explained = match verdict {
                Verdict::Slower => now < old,
                Verdict::Faster => now > old,
                Verdict::Same | Verdict::Ambiguous => false,
            };
            if raw.method == Method::Direct && explained {
                notes.push("no verdict: the clock moved the same way".to_owned());
                *verdict = Verdict::Ambiguous;
            }
        }
    }
    if raw.error.is_infinite() {
        notes.push("too few samples for an interval".to_owned());
    }
    notes
}
