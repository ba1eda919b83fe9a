//! `--watch`: builds and races again whenever the user's own contenders change, and prints one line per workload.
//!
//! Every race is this program again, so that nothing of one is left in the next.

mod files;
mod lines;

use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use children::Leash;
use record::ResultFile;

use crate::options::Options;
use crate::shell::{print, FAILED};
use crate::UsageError;
use files::{Snapshot, Watched};

/// How often files are looked at; a save is over when nothing has changed for as long.
const POLL: Duration = Duration::from_millis(200);
/// For a race to write what it has, once it is told to end.
const END_LIMIT: Duration = Duration::from_secs(10);

/// Races until a signal comes, which is how it ends well.
pub fn watch(options: &Options, arguments: &[String]) -> Result<ExitCode, UsageError> {
    let sources = &options.what.libraries;
    if sources.is_empty() {
        return Err(UsageError::new(
            "--watch has nothing to watch: add --contender ./libmine.so",
        ));
    }
    let stop = stop_on_signal().map_err(UsageError::new)?;
    let folder = Scratch::new().map_err(UsageError::new)?;
    let mut watched = Watched::new(sources, options.instead.build.is_some());
    let mut before: Option<ResultFile> = None;
    loop {
        let seen = watched.snapshot();
        if build(options, &mut watched, &seen, &stop)? {
            let raced = race(arguments, &folder, &stop)?;
            match raced {
                Raced::Stopped => return Ok(ExitCode::SUCCESS),
                Raced::Result(file) => {
                    print(&lines::lines(&file, before.as_ref(), sources));
                    before = Some(*file);
                }
                Raced::Nothing { code, said } => {
                    workspace::tell!("{}", said.trim_end());
                    // What is wrong from the start is no edit's fault.
                    if before.is_none() && options.instead.build.is_none() {
                        return Ok(ExitCode::from(code));
                    }
                }
            }
        }
        if !wait(&watched, &seen, &stop) {
            return Ok(ExitCode::SUCCESS);
        }
    }
}

fn stop_on_signal() -> std::io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, stop.clone())?;
    }
    Ok(stop)
}

/// Waits for a change that has settled; false if it is time to stop.
fn wait(watched: &Watched, seen: &Snapshot, stop: &AtomicBool) -> bool {
    let mut last = seen.clone();
    while !stop.load(Ordering::Relaxed) {
        thread::sleep(POLL);
        let now = watched.snapshot();
        if now == last && now != *seen {
            return true;
        }
        last = now;
    }
    false
}

/// Runs the user's command, if there is one; false if it failed, which it has said itself.
fn build(
    options: &Options,
    watched: &mut Watched,
    seen: &Snapshot,
    stop: &AtomicBool,
) -> Result<bool, UsageError> {
    let Some(command) = &options.instead.build else {
        return Ok(true);
    };
    let mut shell = Command::new("sh");
    let child = shell
        .args(["-c", command])
        .stdin(Stdio::null())
        .follow()
        .spawn();
    let mut child = child.map_err(|error| UsageError(format!("cannot start sh: {error}")))?;
    let status = ended(&mut child, stop).map_err(UsageError::new)?;
    if stop.load(Ordering::Relaxed) {
        return Ok(false);
    }
    watched.built(seen, status.success());
    if !status.success() {
        workspace::tell!("--build failed ({status}); waiting for the next change");
    }
    Ok(status.success())
}

enum Raced {
    Result(Box<ResultFile>),
    /// It wrote no result.
    Nothing {
        code: u8,
        said: String,
    },
    Stopped,
}

fn race(arguments: &[String], folder: &Scratch, stop: &AtomicBool) -> Result<Raced, UsageError> {
    let (json, log) = (folder.0.join("run.json"), folder.0.join("log"));
    let started = || -> std::io::Result<Child> {
        // The one of the race before.
        if json.exists() {
            std::fs::remove_file(&json)?;
        }
        Command::new(std::env::current_exe()?)
            .args(of_one_race(arguments))
            .arg("--json")
            .arg(&json)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&log)?)
            .follow()
            .spawn()
    };
    let mut child = started().map_err(|error| UsageError(format!("cannot race: {error}")))?;
    let status = ended(&mut child, stop).map_err(UsageError::new)?;
    if stop.load(Ordering::Relaxed) {
        return Ok(Raced::Stopped);
    }
    Ok(match record::read_json(&json) {
        Ok(file) => Raced::Result(Box::new(file)),
        Err(_) => Raced::Nothing {
            code: status
                .code()
                .map_or(FAILED, |code| code.clamp(0, 255) as u8)
                .max(FAILED),
            said: std::fs::read_to_string(&log).unwrap_or_default(),
        },
    })
}

/// How a child ended. It hears Ctrl-C itself; another signal is passed on.
fn ended(child: &mut Child, stop: &AtomicBool) -> std::io::Result<ExitStatus> {
    loop {
        if let Some(status) = children::wait_until(child, Instant::now() + POLL)? {
            return Ok(status);
        }
        if stop.load(Ordering::Relaxed) {
            children::ask_to_end(child);
            if let Some(status) = children::wait_until(child, Instant::now() + END_LIMIT)? {
                return Ok(status);
            }
            children::end(child);
            return child.wait();
        }
    }
}

/// This program's arguments without its name and without what only the watcher knows.
fn of_one_race(arguments: &[String]) -> Vec<&String> {
    let mut kept = Vec::new();
    let mut all = arguments.iter().skip(1);
    while let Some(argument) = all.next() {
        match argument.as_str() {
            "--watch" => {}
            "--build" => drop(all.next()),
            other if other.starts_with("--build=") => {}
            _ => kept.push(argument),
        }
    }
    kept
}

/// A folder of this process that nobody else has, and that goes with it.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> std::io::Result<Self> {
        let name = format!("head-to-head-watch-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_race_gets_all_arguments_but_the_watchers() {
        let words = |text: &str| -> Vec<String> { text.split(' ').map(str::to_owned).collect() };
        let arguments = words("bench --watch --op a --build make --build=x --contender ./b.so");
        let kept: Vec<String> = of_one_race(&arguments).into_iter().cloned().collect();
        assert_eq!(kept, words("--op a --contender ./b.so"));
    }
}
