//! Measures some rows of a result file again on this machine.

use crate::repro::Repro;
use crate::{compare, Collection, CompareOptions, ReportingError, Run};
use children::Leash;
use record::{Row, RowKey, Status};
use stats::Verdict;
use std::fmt;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

#[derive(Debug, Clone)]
pub struct VerifyOptions {
    /// Folder of the bench programs.
    pub programs: PathBuf,
    /// Rows to measure again, spread over the file.
    pub sample: usize,
    /// Seed for the choice.
    pub seed: u64,
    /// The smallest difference that counts.
    pub threshold: f64,
    /// A bench that takes longer on one row is stopped.
    pub limit: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conclusion {
    Consistent,
    Inconsistent,
    CannotTell,
}

impl fmt::Display for Conclusion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Conclusion::Consistent => "consistent",
            Conclusion::Inconsistent => "inconsistent",
            Conclusion::CannotTell => "cannot tell",
        })
    }
}

#[derive(Debug, Clone)]
pub struct Verified {
    pub key: RowKey,
    pub conclusion: Conclusion,
    pub reason: String,
}

/// Measures a sample of the rows again, reporting each result as it comes.
pub fn verify(
    collection: &Collection,
    options: &VerifyOptions,
    tell: &mut dyn FnMut(&Verified),
) -> Result<Vec<Verified>, ReportingError> {
    let rows: Vec<(&Run, &Row)> = collection
        .runs
        .iter()
        .flat_map(|run| run.file.rows.iter().map(move |row| (run, row)))
        .filter(|(_, row)| row.status == Status::Ok)
        .collect();
    if rows.is_empty() {
        return Err(ReportingError::Usage(
            "the file has no row with a time, so there is nothing to verify".to_owned(),
        ));
    }
    let mut verified = Vec::new();
    for (run, row) in spread(&rows, options.sample, options.seed) {
        let (conclusion, reason) = match again(run, row, options) {
            Err(reason) => (Conclusion::CannotTell, reason),
            Ok(anew) => conclude(run, row, &anew, options),
        };
        let result = Verified {
            key: RowKey::of(row),
            conclusion,
            reason,
        };
        tell(&result);
        verified.push(result);
    }
    Ok(verified)
}

/// Evenly spread items, starting at an offset given by the seed.
fn spread<T: Copy>(items: &[T], count: usize, seed: u64) -> Vec<T> {
    let count = count.clamp(1, items.len());
    let start = seed as usize % items.len();
    (0..count)
        .map(|index| items[(start + index * items.len() / count) % items.len()])
        .collect()
}

/// Runs the bench on the row again. A result file is untrusted: only our own programs are started, by
/// plain name, without a shell, with options from `Repro`, and not for ever.
fn again(run: &Run, row: &Row, options: &VerifyOptions) -> Result<Collection, String> {
    let repro = Repro::of(row, run.file.meta.device.kind)?;
    let program = &repro.program;
    if !options.programs.join(program).is_file() {
        return Err(format!(
            "no {program} in {}; build it, or give its folder with --programs",
            options.programs.display()
        ));
    }
    // Its name cannot be guessed, and nobody else may look inside.
    let scratch = tempfile::Builder::new()
        .permissions(Permissions::from_mode(0o700))
        .tempdir()
        .map_err(|error| format!("no scratch folder: {error}"))?;
    let json = scratch.path().join("again.json");
    let mut child = repro
        .command(&options.programs, &json)?
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .leash()
        .spawn()
        .map_err(|error| format!("cannot start {program}: {error}"))?;
    let status = children::wait_until(&mut child, Instant::now() + options.limit);
    let Ok(Some(status)) = status else {
        children::end(&mut child);
        let limit_s = options.limit.as_secs();
        return Err(format!(
            "{program} took longer than {limit_s} s; see --limit-s"
        ));
    };
    let anew = Collection::read(&json);
    let anew = anew.map_err(|error| format!("{program} ended with {status}: {error}"))?;
    match anew.runs.is_empty() {
        true => Err(format!("{program} wrote a file without a run")),
        false => Ok(anew),
    }
}

fn conclude(
    run: &Run,
    row: &Row,
    anew: &Collection,
    options: &VerifyOptions,
) -> (Conclusion, String) {
    let key = RowKey::of(row);
    let here = &anew.runs[0].file.meta;
    let there = &run.file.meta;
    let again = anew.runs[0]
        .file
        .rows
        .iter()
        .find(|again| RowKey::of(again) == key);
    let Some(again) = again else {
        let reason = "the command now measures a different row".to_owned();
        return (Conclusion::CannotTell, reason);
    };
    if again.status != Status::Ok {
        let reason = again.reason.as_deref().unwrap_or_default();
        let conclusion = match again.status {
            Status::Wrong => Conclusion::Inconsistent,
            _ => Conclusion::CannotTell,
        };
        return (conclusion, format!("now {}: {reason}", again.status));
    }
    if here.device.name != there.device.name {
        let reason = format!(
            "measured on '{}', this is '{}'",
            there.device.name, here.device.name
        );
        return (Conclusion::CannotTell, reason);
    }
    let base = Collection {
        runs: vec![run.clone()],
    };
    let compare_options = CompareOptions {
        threshold: options.threshold,
        across_devices: false,
    };
    let comparison = match compare(&base, anew, &compare_options) {
        Ok(comparison) => comparison,
        Err(error) => return (Conclusion::CannotTell, error.to_string()),
    };
    let change = comparison.changes.iter().find(|change| change.key == key);
    let Some(change) = change else {
        return (Conclusion::CannotTell, "the row is not comparable".into());
    };
    let conclusion = match change.verdict {
        Verdict::Same => Conclusion::Consistent,
        Verdict::Slower | Verdict::Faster => Conclusion::Inconsistent,
        Verdict::Ambiguous => Conclusion::CannotTell,
    };
    let mut reason = format!(
        "{} us then, {} us now, ratio {} {}",
        record::time_us_text(change.base_us),
        record::time_us_text(change.new_us),
        record::ratio_text(change.ratio),
        record::interval_text(change.low, change.high)
    );
    for note in change.notes.iter().chain(&comparison.environment) {
        reason += &format!("; {note}");
    }
    (conclusion, reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sample_is_spread() {
        let items: Vec<usize> = (0..10).collect();
        assert_eq!(spread(&items, 5, 1), [1, 3, 5, 7, 9]);
        assert_eq!(spread(&items, 50, 0).len(), 10);
    }
}
