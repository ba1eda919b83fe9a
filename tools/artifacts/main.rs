//! The program `artifacts`: parses the command line, runs one command, prints the outcome.

mod cli;
mod commands;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::Duration;

use clap::Parser;
use serde_json::{json, Value};

use artifacts_lib::cache::{self, Access, Cache};
use artifacts_lib::cancel::{Cancel, INTERRUPTED_EXIT_CODE};
use artifacts_lib::context::Context;
use artifacts_lib::credentials::Settings;
use artifacts_lib::error::At;
use artifacts_lib::http::{Http, Policy};
use artifacts_lib::lock::{self, Lock};
use artifacts_lib::mirror::Place;
use artifacts_lib::progress::Progress;
use artifacts_lib::{Error, Result};

use cli::{Cli, Command};

fn main() -> ExitCode {
    let cli = Cli::parse();
    let json = cli.common.json;
    if let Err(error) = workspace::enter_user_folder() {
        workspace::tell!("artifacts: {error}");
        return ExitCode::FAILURE;
    }
    let code = |ok: bool| {
        if ok {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        }
    };
    match run(cli) {
        Ok(report) => {
            if json {
                workspace::say!("{}", json!({ "ok": report.ok, "artifacts": report.rows }));
            }
            code(report.ok)
        }
        Err(error) => {
            if json {
                workspace::say!("{}", json!({ "ok": false, "error": error.to_string() }));
            }
            workspace::tell!("artifacts: {error}");
            match error {
                Error::Interrupted => ExitCode::from(INTERRUPTED_EXIT_CODE),
                _ => ExitCode::FAILURE,
            }
        }
    }
}

/// What a command did, artifact by artifact.
struct Report {
    json: bool,
    ok: bool,
    rows: Vec<Value>,
}

impl Report {
    /// Adds a row; `line` is the same as text.
    fn row(&mut self, row: Value, line: &str) {
        if !self.json {
            workspace::say!("{line}");
        }
        self.rows.push(row);
    }

    fn failure(&mut self, name: &str, error: &Error) {
        self.ok = false;
        self.rows
            .push(json!({ "name": name, "status": "failed", "error": error.to_string() }));
        workspace::tell!("artifacts: {error}");
    }
}

fn run(cli: Cli) -> Result<Report> {
    let mut report = Report {
        json: cli.common.json,
        ok: true,
        rows: Vec::new(),
    };
    let access = match cli.command {
        Command::Gc(_) => Access::Exclusive,
        _ => Access::Shared,
    };
    let context = open(&cli.common, access)?;
    match cli.command {
        Command::List => commands::list(&context, &mut report),
        Command::Fetch(args) => commands::fetch(&context, &args, &mut report)?,
        Command::Pin(args) => commands::pin(&context, args, &mut report)?,
        Command::Build(args) => commands::build(&context, &args, &mut report)?,
        Command::Verify(args) => commands::verify(&context, &args, &mut report)?,
        Command::Upload(args) => commands::upload(&context, &args, &mut report)?,
        Command::Sbom(args) => commands::sbom(&context, &args)?,
        Command::Gc(args) => commands::gc(&context, &args, &mut report)?,
    }
    Ok(report)
}

fn open(common: &cli::Common, access: Access) -> Result<Context> {
    let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let cancel = Cancel::on_signals().at("watch signals of", Path::new("this process"))?;
    let lock_path = common.lock.clone().map_or_else(lock::find, Ok)?;
    let lock_path = lock_path.canonicalize().at("find", &lock_path)?;
    let root = common.cache.clone().map_or_else(cache::default_root, Ok)?;
    let policy = Policy {
        attempts: common.attempts.max(1),
        stall: Duration::from_secs(common.stall.max(1)),
        ..Policy::default()
    };
    let mirrors = common
        .mirror
        .iter()
        .cloned()
        .chain(variable("HEAD_TO_HEAD_MIRROR"));
    let visible = !common.quiet && !common.json;
    Ok(Context {
        lock: Lock::read(&lock_path)?,
        cache: Cache::open(&root, access)?,
        http: Http::new(policy, cancel.clone())?,
        mirrors: mirrors.map(|text| Place::parse(&text)).collect(),
        s3: Settings::from_environment().ok(),
        python: common
            .python
            .clone()
            .or(variable("HEAD_TO_HEAD_PYTHON").map(PathBuf::from)),
        recipes: common
            .recipes
            .clone()
            .unwrap_or_else(|| recipes_of(&lock_path)),
        progress: if visible {
            Progress::on_terminal()
        } else {
            Progress::none()
        },
        cancel,
        building: Mutex::new(()),
        lock_path,
    })
}

/// The recipes in the checkout of the lock.
fn recipes_of(lock: &Path) -> PathBuf {
    let root = lock
        .parent()
        .and_then(Path::parent)
        .unwrap_or(Path::new("."));
    root.join("tools/artifacts/recipes")
}
