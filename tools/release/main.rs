//! Writes an archive with which a stranger races a kernel of their own, without Bazel.
//!
//! ```text
//! ./bazelw run --config=cpu //tools/release -- --out DIR
//! ```

mod contents;
mod fetch;
mod lock;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use clap::Parser;

use lock::Lock;

/// What the programs are built for: `none`, or SMs joined by +.
const ARCH: &str = env!("HEAD_TO_HEAD_ARCH");

#[derive(Parser)]
#[command(
    name = "release",
    about = "Writes an archive of the benches for the architecture that they are built for: docs/YOUR_KERNEL.md"
)]
struct Options {
    /// Write the archive to this folder
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Write it although it contains what the lock says may not be passed on: for your own machines only
    #[arg(long)]
    accept_licence: bool,
}

fn main() -> ExitCode {
    match write(&Options::parse()) {
        Ok(archive) => {
            workspace::say!("{}", archive.display());
            ExitCode::SUCCESS
        }
        Err(reason) => {
            workspace::tell!("release: {reason}");
            ExitCode::from(2)
        }
    }
}

/// Where `bazel run` starts it are the programs; the sources are where the user is.
fn write(options: &Options) -> Result<PathBuf, String> {
    if !ARCH
        .split('+')
        .all(|sm| sm == "none" || sm.starts_with("sm_") && !sm.contains("_on_"))
    {
        return Err(format!("programs for {ARCH} are emulated, which nobody races; build with --config=cpu or sm90a"));
    }
    let built = std::env::current_dir().map_err(|error| error.to_string())?;
    let root = workspace::root().map_err(|error| error.to_string())?;
    workspace::enter_user_folder().map_err(|error| error.to_string())?;
    let lock = Lock::read(&root.join("third_party/artifacts.lock.json"))?;
    let bound = lock.not_to_be_passed_on(ARCH);
    if !bound.is_empty() && !options.accept_licence {
        return Err(format!(
            "programs for {ARCH} contain {}, which the lock says may not be passed on; build them where they run, or \
             add --accept-licence for machines of your own",
            bound.join(", ")
        ));
    }
    fs::create_dir_all(&options.out).map_err(|error| at(&options.out, &error))?;
    let name = format!("head-to-head-{}-{}", word(ARCH), std::env::consts::ARCH);
    let folder = options.out.join(&name);
    if folder.exists() {
        let folder = folder.display();
        return Err(format!(
            "{folder} exists already; remove it, or choose another --out"
        ));
    }
    contents::copy(&built, &root, &folder)?;
    fetch::write(&lock, ARCH != "none", &folder)?;
    contents::seal(&folder)?;
    let archive = options.out.join(format!("{name}.tar.gz"));
    pack(&options.out, &name, &archive)?;
    fs::remove_dir_all(&folder).map_err(|error| at(&folder, &error))?;
    Ok(archive)
}

fn at(path: &Path, error: &dyn std::fmt::Display) -> String {
    format!("{}: {error}", path.display())
}

/// The architecture in a file's name.
fn word(arch: &str) -> String {
    match arch {
        "none" => "cpu".to_owned(),
        arch => arch.replace('+', "-"),
    }
}

/// Equal contents give equal bytes.
fn pack(folder: &Path, name: &str, archive: &Path) -> Result<(), String> {
    let partial = archive.with_extension("partial");
    let status = Command::new("tar")
        .args([
            "--sort=name",
            "--mtime=@0",
            "--owner=0",
            "--group=0",
            "--numeric-owner",
        ])
        .args(["--use-compress-program=gzip -n", "--create", "--file"])
        .arg(&partial)
        .arg("--directory")
        .arg(folder)
        .arg(name)
        .status()
        .map_err(|error| format!("cannot start tar: {error}; install GNU tar"))?;
    if !status.success() {
        return Err(format!(
            "tar failed ({status}); is there space in {}?",
            folder.display()
        ));
    }
    fs::rename(&partial, archive).map_err(|error| at(archive, &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archives_are_named_after_what_runs_them() {
        assert_eq!(word("none"), "cpu");
        assert_eq!(word("sm_90a+sm_100a"), "sm_90a-sm_100a");
    }

    #[test]
    fn equal_folders_are_equal_archives() {
        let folder = tempfile::TempDir::new().unwrap();
        let archive = |number: usize| {
            let place = folder.path().join(number.to_string());
            fs::create_dir_all(place.join("name")).unwrap();
            fs::write(place.join("name/file"), "text").unwrap();
            let archive = place.join("name.tar.gz");
            pack(&place, "name", &archive).unwrap();
            fs::read(archive).unwrap()
        };
        assert_eq!(archive(1), archive(2));
    }
}
