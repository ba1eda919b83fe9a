//! The folder of a run: its location, its options, and who is writing to it.

use crate::options::Kept;
use crate::plan::Device;
use crate::SuiteError;
use serde::{Deserialize, Serialize};
use std::fmt::Display;
use std::fs::{File, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

const STATE: &str = "suite.json";
const LOCK: &str = "suite.lock";
/// The bench of a killed suite writes its last rows.
const ORPHAN_LIMIT: Duration = Duration::from_secs(10);

#[derive(Debug, Serialize, Deserialize)]
struct State {
    version: u32,
    options: Kept,
}

#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    lock: File,
}

impl Folder {
    /// A new folder, by default named after the time and the device.
    pub fn create(
        given: Option<&Path>,
        device: &Device,
        options: &Kept,
    ) -> Result<Folder, SuiteError> {
        let path = match given {
            Some(path) => path.to_owned(),
            None => Path::new("out").join(format!("{}-{}", timestamp(), slug(device))),
        };
        std::fs::create_dir_all(&path)
            .map_err(|error| SuiteError(format!("{}: {error}", path.display())))?;
        let lock = lock(&path)?;
        if path.join(STATE).exists() {
            return Err(SuiteError(format!(
                "{} already holds a run; continue it with --resume, or choose another folder",
                path.display()
            )));
        }
        let folder = Folder { path, lock };
        let state = State {
            version: 1,
            options: options.clone(),
        };
        let text = serde_json::to_string_pretty(&state).map_err(SuiteError::new)?;
        record::write_atomic(&folder.file(STATE), (text + "\n").as_bytes())?;
        Ok(folder)
    }

    /// The folder of an earlier run and its options.
    pub fn open(path: &Path) -> Result<(Folder, Kept), SuiteError> {
        let state = path.join(STATE);
        let failed = |problem: &dyn Display| {
            SuiteError(format!(
                "--resume: {} is not the state of a suite: {problem}",
                state.display()
            ))
        };
        // Before the lock, which would be a file in a folder that is not ours.
        state.metadata().map_err(|error| failed(&error))?;
        let lock = lock(path)?;
        let text = std::fs::read_to_string(&state).map_err(|error| failed(&error))?;
        let parsed: State = serde_json::from_str(&text).map_err(|error| failed(&error))?;
        if parsed.version != 1 {
            return Err(failed(&format!(
                "version {}, but this program knows only 1",
                parsed.version
            )));
        }
        let folder = Folder {
            path: path.to_owned(),
            lock,
        };
        Ok((folder, parsed.options))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// The lock once more, as a bench's standard input: it is held until the last process of the run
    /// has ended, however the suite itself ends.
    pub fn held(&self) -> Result<Stdio, SuiteError> {
        let held = self.lock.try_clone().map_err(SuiteError::new)?;
        Ok(held.into())
    }
}

/// Takes the lock of a folder. It holds between containers, and between nodes wherever the file system
/// has locks; a folder without is refused.
fn lock(folder: &Path) -> Result<File, SuiteError> {
    let path = folder.join(LOCK);
    let failed = |problem: &dyn Display| SuiteError(format!("{}: {problem}", path.display()));
    let open = File::options()
        .create(true)
        .read(true)
        .append(true)
        .open(&path);
    let mut file = open.map_err(|error| failed(&error))?;
    let start = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => break,
            Err(TryLockError::Error(error)) => return Err(failed(&error)),
            Err(TryLockError::WouldBlock) if start.elapsed() < ORPHAN_LIMIT => {
                std::thread::sleep(Duration::from_millis(100));
            }
            Err(TryLockError::WouldBlock) => {
                let facts = std::fs::read_to_string(&path).unwrap_or_default();
                let holder = record::printable(facts.lines().last().unwrap_or("another suite"));
                return Err(SuiteError(format!(
                    "{} is being written by {holder}; wait for it, or stop it and resume",
                    folder.display()
                )));
            }
        }
    }
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let (process, since) = (std::process::id(), cli::utc_now());
    // For people; the lock itself is the kernel's.
    let _ = writeln!(file, "process {process} on {} since {since}", host.trim());
    Ok(file)
}

fn slug(device: &Device) -> String {
    if device.kind == "cpu" {
        return "cpu".to_owned();
    }
    let name = device.name.to_lowercase().replace("nvidia ", "");
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    name.chars().map(plain).collect()
}

/// `2026-11-15T03-40-24Z`: sorts by time and is valid on every file system.
fn timestamp() -> String {
    cli::utc_now().replace(':', "-")
}
