//! Resuming an interrupted run: existing rows are kept, and only missing ones are measured.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use contender::Identity;
use record::{Meta, Protocol, ResultFile, Row, RowKey};

use crate::erased::AnyProblem;
use crate::UsageError;

/// The rows of the earlier part.
pub struct Earlier {
    file: ResultFile,
    /// How many processes have measured each row.
    processes: HashMap<RowKey, usize>,
}

impl Earlier {
    /// Reads the earlier part. A missing file is that of a run interrupted before its first row.
    pub fn read(path: &Path, meta: &Meta) -> Result<Option<Earlier>, UsageError> {
        if !path.exists() {
            return Ok(None);
        }
        let file =
            record::read_json(path).map_err(|error| UsageError(format!("--resume: {error}")))?;
        if let Some(difference) = difference(&file.meta, meta) {
            return Err(UsageError(format!(
                "--resume {}: {difference}, so the rows would not be comparable; start a new run",
                path.display()
            )));
        }
        let rows = file.rows.iter();
        let processes = rows.map(|row| (RowKey::of(row), row.processes())).collect();
        Ok(Some(Earlier { file, processes }))
    }

    /// Fails where a contender is not the code that was measured before.
    pub fn check_same(&self, path: &Path, now: &Identity) -> Result<(), UsageError> {
        let (name, sha256) = (&now.name, &now.artifact_sha256);
        let mut rows = self.file.rows.iter().map(|row| &row.contender);
        let other = rows.find(|row| row.name == *name && row.artifact_sha256 != *sha256);
        let shown = |sha256: &Option<String>| match sha256 {
            Some(sha256) => format!("sha256 {sha256}"),
            None => "linked in".to_owned(),
        };
        other.map_or(Ok(()), |earlier| {
            Err(UsageError(format!(
                "--resume {}: {name} was {} and is {}, so the rows would not be comparable; start a new run",
                path.display(),
                shown(&earlier.artifact_sha256),
                shown(sha256)
            )))
        })
    }

    /// How many processes have measured all of these rows.
    pub fn processes(&self, keys: impl Iterator<Item = RowKey>) -> usize {
        let counts = keys.map(|key| self.processes.get(&key).copied().unwrap_or(0));
        counts.min().unwrap_or(0)
    }

    /// Copies the rows into the new file, except those that are measured again.
    pub fn hand_over(self, file: &mut ResultFile, anew: &HashSet<RowKey>) {
        let Meta {
            started_at,
            spent_s,
            warnings,
            ..
        } = self.file.meta;
        file.meta.warnings.push(format!(
            "continues a run that started at {started_at}; this part started at {}",
            file.meta.started_at
        ));
        let news = warnings.into_iter();
        let news: Vec<String> = news
            .filter(|warning| !file.meta.warnings.contains(warning))
            .filter(|warning| !warning.starts_with(CUT))
            .collect();
        file.meta.warnings.extend(news);
        file.meta.started_at = started_at;
        file.meta.spent_s = spent_s;
        let old = |row: &Row| !anew.contains(&RowKey::of(row));
        file.rows = self.file.rows.into_iter().filter(old).collect();
    }
}

/// How the warning begins if `--max-minutes` ended the run.
pub const CUT: &str = "cut by --max-minutes";

/// The key of a contender's row for this problem.
pub fn key(problem: &AnyProblem, contender: &str) -> RowKey {
    let workload = problem.workload();
    RowKey {
        op: problem.op().to_owned(),
        dtype: problem.dtype().to_string(),
        suite: workload.suite.clone(),
        workload: workload.name.clone(),
        axes: serde_json::to_string(&workload.axes).unwrap_or_default(),
        contender: contender.to_owned(),
    }
}

/// Why two parts cannot belong to the same run.
fn difference(earlier: &Meta, now: &Meta) -> Option<String> {
    let protocol = |meta: &Meta| Protocol {
        // Measured again at every start.
        timer_overhead_us: 0.0,
        ..meta.protocol.clone()
    };
    let card = |meta: &Meta| {
        let uuid = meta.gpu.as_ref().and_then(|gpu| gpu.uuid.clone());
        (meta.device.clone(), uuid, meta.driver.clone())
    };
    let commit = |meta: &Meta| meta.git.as_ref().map(|git| git.commit.clone());
    let said = |what: &str, earlier: &dyn std::fmt::Debug, now: &dyn std::fmt::Debug| {
        Some(format!("{what} was {earlier:?} and is {now:?}"))
    };
    if earlier.program != now.program {
        return said("the program", &earlier.program, &now.program);
    }
    if card(earlier) != card(now) {
        return said("the device", &card(earlier), &card(now));
    }
    if earlier.build != now.build || earlier.artifact_lock_sha256 != now.artifact_lock_sha256 {
        return said("the build", &earlier.build, &now.build);
    }
    if commit(earlier) != commit(now) {
        return said("the commit", &commit(earlier), &commit(now));
    }
    if earlier.seed != now.seed {
        return said("the seed", &earlier.seed, &now.seed);
    }
    if protocol(earlier) != protocol(now) {
        return said("the protocol", &protocol(earlier), &protocol(now));
    }
    None
}
