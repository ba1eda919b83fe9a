//! Writes a folder with a kernel of your own in it, ready to be built without Bazel and raced.
//!
//! ```text
//! ./bazelw run //tools/kit -- new rmsnorm
//! ./bazelw run //tools/kit -- new my_op --own-op
//! ```

mod folder;
mod language;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use language::Language;

#[derive(Parser)]
#[command(
    name = "kit",
    about = "Starts a kernel of your own for Head-to-Head: docs/YOUR_KERNEL.md"
)]
struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Write a new folder: source, interface, build line, README
    New {
        /// What to start from: rmsnorm, or gemm in cutlass; with --own-op, the name of your operation
        name: String,
        /// An operation that the benches do not have: also write problem.json and an oracle
        #[arg(long)]
        own_op: bool,
        /// Which language it is in
        #[arg(long, value_enum, default_value = "c")]
        language: Language,
        /// The folder to make [default: the name]
        #[arg(long, value_name = "FOLDER")]
        into: Option<PathBuf>,
    },
}

/// The folder of a release, which has the examples that the kit needs.
fn beside_this_program() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    let folder = program.parent()?.to_owned();
    folder
        .join("Kernels/contender.h")
        .exists()
        .then_some(folder)
}

fn main() -> ExitCode {
    let Command::New {
        name,
        own_op,
        language,
        into,
    } = Options::parse().command;
    let made = || -> Result<PathBuf, String> {
        let root = match beside_this_program() {
            Some(root) => root,
            None => workspace::root().map_err(|error| error.to_string())?,
        };
        workspace::enter_user_folder().map_err(|error| error.to_string())?;
        let into = into.unwrap_or_else(|| name.clone().into());
        match own_op {
            true => folder::write_own(&root, &name, language, &into)?,
            false => folder::write(&root, &name, language, &into)?,
        }
        Ok(into)
    };
    match made() {
        Ok(into) => {
            workspace::say!(
                "{} is ready; read {}/README.md",
                into.display(),
                into.display()
            );
            ExitCode::SUCCESS
        }
        Err(reason) => {
            workspace::tell!("kit: {reason}");
            ExitCode::from(2)
        }
    }
}
