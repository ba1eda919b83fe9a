//! The folder of a run: its location, its options, and who is writing to it.

use crate::options::Kept;
use crate::plan::Device;
use crate::SuiteError;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::Duration;

const STATE: &str = "suite.json";
const RUNNING: &str = "running.pid";
/// A bench whose suite was killed exits after its next row.
const ORPHAN_LIMIT: Duration = Duration::from_secs(300);

#[derive(Debug, Serialize, Deserialize)]
struct State {
    version: u32,
    options: Kept,
}

#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
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
        if path.join(STATE).exists() {
            return Err(SuiteError(format!(
                "{} already holds a run; continue it with --resume, or choose another folder",
                path.display()
            )));
        }
        std::fs::create_dir_all(&path)
            .map_err(|error| SuiteError(format!("{}: {error}", path.display())))?;
        let folder = Folder { path };
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
        let folder = Folder {
            path: path.to_owned(),
        };
        let state = folder.file(STATE);
        let failed = |problem: &dyn std::fmt::Display| {
            SuiteError(format!(
                "--resume: {} is not the state of a suite: {problem}",
                state.display()
            ))
        };
        let text = std::fs::read_to_string(&state).map_err(|error| failed(&error))?;
        let parsed: State = serde_json::from_str(&text).map_err(|error| failed(&error))?;
        if parsed.version != 1 {
            return Err(failed(&format!(
                "version {}, but this program knows only 1",
                parsed.version
            )));
        }
        folder.wait_for_orphan()?;
        Ok((folder, parsed.options))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Records who is running, so that a resumed suite does not measure alongside a bench that
    /// still runs.
    pub fn note_running(&self, pid: u32) {
        // Best effort: without it a resumed run may start a moment too early.
        let _ = std::fs::write(self.file(RUNNING), pid.to_string());
    }

    pub fn note_ended(&self) {
        let _ = std::fs::remove_file(self.file(RUNNING));
    }

    fn wait_for_orphan(&self) -> Result<(), SuiteError> {
        let Ok(pid) = std::fs::read_to_string(self.file(RUNNING)) else {
            return Ok(());
        };
        let lives = || {
            let program = std::fs::read_link(format!("/proc/{}/exe", pid.trim()));
            program.is_ok_and(|path| {
                let name = path
                    .file_name()
                    .unwrap_or_default()
                    .to_string_lossy()
                    .into_owned();
                name.contains("bench")
            })
        };
        let start = std::time::Instant::now();
        if lives() {
            eprintln!(
                "waiting for process {} of the killed run to exit",
                pid.trim()
            );
        }
        while lives() {
            if start.elapsed() > ORPHAN_LIMIT {
                return Err(SuiteError(format!(
                    "process {} of the killed run is still running; stop it and resume again",
                    pid.trim()
                )));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        self.note_ended();
        Ok(())
    }
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
