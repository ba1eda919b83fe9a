//! Where results are written, and when.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use record::{RecordError, ResultFile};

use crate::options::OutputOptions;
use crate::UsageError;

/// About the most that a killed run can lose. Files grow, so writing them is limited to a twentieth
/// of the time.
const CHECKPOINT_EVERY: Duration = Duration::from_secs(1);
const CHECKPOINT_SHARE: u32 = 20;

/// An output format, and the function that writes it.
type Format = fn(&ResultFile) -> Result<String, RecordError>;

pub struct Outputs {
    files: Vec<(PathBuf, Format)>,
    /// When the last checkpoint was written, and how long that took.
    written: Option<(Instant, Duration)>,
}

impl Outputs {
    /// Checks the paths before anything is measured.
    pub fn new(options: &OutputOptions, program: &str) -> Result<Self, UsageError> {
        let formats: [(&Option<PathBuf>, &str, Format); 3] = [
            (&options.json, "json", record::to_json),
            (&options.csv, "csv", |file| Ok(record::to_csv(file))),
            (&options.md, "md", |file| Ok(record::to_markdown(file))),
        ];
        let mut files = Vec::new();
        for (path, extension, format) in formats {
            files.extend(path.clone().map(|path| (path, format)));
            if let Some(folder) = &options.out_dir {
                std::fs::create_dir_all(folder).map_err(|error| {
                    UsageError(format!("--out-dir {}: {error}", folder.display()))
                })?;
                files.push((folder.join(format!("{program}.{extension}")), format));
            }
        }
        files
            .iter()
            .try_for_each(|(path, _)| check_writable(path))?;
        Ok(Self {
            files,
            written: None,
        })
    }

    /// Writes a checkpoint now and then. Failure is no reason to stop measuring: the final write
    /// decides.
    pub fn checkpoint(&mut self, file: &ResultFile) -> Result<(), RecordError> {
        let too_soon = |(written, took): (Instant, Duration)| {
            written.elapsed() < CHECKPOINT_EVERY.max(took * CHECKPOINT_SHARE)
        };
        if self.written.is_some_and(too_soon) {
            return Ok(());
        }
        let start = Instant::now();
        let result = self.write(file);
        self.written = Some((Instant::now(), start.elapsed()));
        result
    }

    /// Writes every file, even if one of them fails.
    pub fn write(&self, file: &ResultFile) -> Result<(), RecordError> {
        let mut first_error = Ok(());
        for (path, format) in &self.files {
            let written = format(file).and_then(|text| record::write_atomic(path, text.as_bytes()));
            first_error = first_error.and(written);
        }
        first_error
    }
}

fn check_writable(path: &Path) -> Result<(), UsageError> {
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    if !folder.is_dir() {
        return Err(UsageError(format!(
            "cannot write {}: the folder {} does not exist",
            path.display(),
            folder.display()
        )));
    }
    if path.is_dir() {
        return Err(UsageError(format!(
            "cannot write {}: it is a folder",
            path.display()
        )));
    }
    Ok(())
}
