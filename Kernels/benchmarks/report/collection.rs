//! Several runs in one file, each with its own meta: merging loses nothing about a row.

use crate::views::Place;
use crate::{read_text, ReportingError};
use record::{Meta, RecordError, ResultFile, Row, SCHEMA_VERSION};
use serde::de::IgnoredAny;
use serde::Deserialize;
use std::collections::HashMap;
use std::path::Path;

/// Version of the collection format; the runs have their own (`meta.schema`).
pub const COLLECTION_VERSION: u32 = 1;

/// A suite writes its collection under this name.
pub const SUITE_RESULTS: &str = "results.json";

/// One run and the file it came from.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// Name of the file that the bench wrote.
    pub origin: String,
    pub file: ResultFile,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Collection {
    pub runs: Vec<Run>,
}

impl Collection {
    /// Reads a result file or a collection, plain or gzipped, or the collection in a suite's folder.
    pub fn read(path: &Path) -> Result<Collection, ReportingError> {
        let inside = path.join(SUITE_RESULTS);
        let path = if path.is_dir() { &inside } else { path };
        let text = read_text(path).map_err(|source| RecordError::Read {
            path: path.to_owned(),
            source,
        })?;
        let name = path.file_name().unwrap_or(path.as_os_str());
        let origin = path.display().to_string();
        Self::parse(&text, &origin, &name.to_string_lossy())?.bounded(&origin)
    }

    /// All files, in order.
    pub fn read_all(paths: &[impl AsRef<Path>]) -> Result<Collection, ReportingError> {
        let mut all = Collection::default();
        for path in paths {
            all.runs.extend(Self::read(path.as_ref())?.runs);
        }
        all.bounded("the files together")
    }

    fn bounded(self, origin: &str) -> Result<Collection, ReportingError> {
        let files: Vec<&ResultFile> = self.runs.iter().map(|run| &run.file).collect();
        let refused = |problem: String| ReportingError::input(origin, problem);
        record::check_together(&files).map_err(refused)?;
        one_division(&files).map_err(refused)?;
        Ok(self)
    }

    /// `origin` names the text in errors; `name` is the provenance of a plain result file's rows.
    pub fn parse(text: &str, origin: &str, name: &str) -> Result<Collection, ReportingError> {
        #[derive(Deserialize)]
        struct Probe {
            collection: Option<serde_json::Value>,
            meta: Option<IgnoredAny>,
        }
        let malformed = |error: serde_json::Error| {
            ReportingError::input(origin, format!("is not a result file: {error}"))
        };
        // serde would take an array for a struct's fields in order.
        if text.trim_start().starts_with('[') {
            return Err(ReportingError::input(
                origin,
                "is not a result file: it is an array",
            ));
        }
        record::check_text(text).map_err(malformed)?;
        let probe: Probe = serde_json::from_str(text).map_err(malformed)?;
        match (probe.collection, probe.meta) {
            (Some(version), _) => Self::parse_collection(text, origin, &version),
            (None, Some(_)) => Ok(Collection {
                runs: vec![Run {
                    origin: name.to_owned(),
                    file: record::from_json(text, origin)?,
                }],
            }),
            (None, None) => Err(ReportingError::input(
                origin,
                "is not a result file: it has neither 'meta' nor 'collection'; benches write result \
                 files with --json, 'report merge' writes collections",
            )),
        }
    }

    fn parse_collection(
        text: &str,
        origin: &str,
        version: &serde_json::Value,
    ) -> Result<Collection, ReportingError> {
        #[derive(Deserialize)]
        struct Versions {
            runs: Vec<VersionedRun>,
        }
        #[derive(Deserialize)]
        struct VersionedRun {
            meta: VersionedMeta,
        }
        #[derive(Deserialize)]
        struct VersionedMeta {
            schema: serde_json::Value,
        }
        #[derive(Deserialize)]
        struct Whole {
            runs: Vec<WholeRun>,
        }
        #[derive(Deserialize)]
        struct WholeRun {
            origin: String,
            meta: Meta,
            rows: Vec<Row>,
        }
        let schema = |found: &serde_json::Value, known| RecordError::Schema {
            origin: origin.to_owned(),
            found: found.to_string(),
            known,
        };
        let malformed = |error: serde_json::Error| {
            ReportingError::input(
                origin,
                format!("is not a collection of result files: {error}"),
            )
        };
        if *version != COLLECTION_VERSION {
            return Err(schema(version, COLLECTION_VERSION).into());
        }
        // Check versions first: a file of another version may fail in any field.
        let versions: Versions = serde_json::from_str(text).map_err(malformed)?;
        for run in &versions.runs {
            if run.meta.schema != SCHEMA_VERSION {
                return Err(schema(&run.meta.schema, SCHEMA_VERSION).into());
            }
        }
        let whole: Whole = serde_json::from_str(text).map_err(malformed)?;
        let runs = whole.runs.into_iter().map(|run| Run {
            origin: run.origin,
            file: ResultFile {
                meta: run.meta,
                rows: run.rows,
            },
        });
        let runs: Vec<Run> = runs.collect();
        for run in &runs {
            record::check(&run.file).map_err(|problem| RecordError::Inconsistent {
                origin: format!("{origin}: {}", run.origin),
                problem,
            })?;
        }
        Ok(Collection { runs })
    }

    /// JSON text: one line per row, like the result files themselves.
    pub fn to_json(&self) -> Result<String, ReportingError> {
        let mut text = format!("{{\n\"collection\": {COLLECTION_VERSION},\n\"runs\": [");
        for (index, run) in self.runs.iter().enumerate() {
            text += if index == 0 { "\n" } else { ",\n" };
            let file = record::to_json(&run.file)?;
            // The file's own text, with its origin as the first member.
            let members = file.trim_end().strip_prefix('{').unwrap_or(&file);
            text += &format!("{{\n\"origin\": {},", serde_json::json!(run.origin));
            text += members;
        }
        text += "\n]\n}\n";
        Ok(text)
    }

    pub fn row_count(&self) -> usize {
        self.runs.iter().map(|run| run.file.rows.len()).sum()
    }
}

/// Shards of four and shards of two do not make one run: some workloads would be there twice, or come
/// from a run that was given up.
fn one_division(files: &[&ResultFile]) -> Result<(), String> {
    let mut divisions: HashMap<(Place, &str), &str> = HashMap::new();
    for meta in files.iter().map(|file| &file.meta) {
        let Some((_, count)) = meta
            .shard
            .as_deref()
            .and_then(|shard| shard.split_once('/'))
        else {
            continue;
        };
        let known = divisions
            .entry((Place::of(meta), &meta.program))
            .or_insert(count);
        if *known != count {
            return Err(format!(
                "{} has shards of {known} and shards of {count}, which are not one run; leave out those \
                 of the other",
                meta.program
            ));
        }
    }
    Ok(())
}
