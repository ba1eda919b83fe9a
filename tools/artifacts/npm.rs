//! Files of the npm registry, through the machine's own npm.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cancel::Cancel;
use crate::error::{At, Result};
use crate::pip::only_file;
use crate::process;

/// Downloads `package@version` into `folder`; the caller verifies it.
pub fn download(package: &str, version: &str, folder: &Path, cancel: &Cancel) -> Result<PathBuf> {
    let files = folder.join("files");
    fs::create_dir(&files).at("create", &files)?;
    let mut command = Command::new("npm");
    command.args([
        "pack",
        "--loglevel=error",
        &format!("{package}@{version}"),
        "--pack-destination",
    ]);
    command.arg(&files).current_dir(folder);
    process::run(&mut command, &folder.join("log"), cancel, || Ok(()))?;
    only_file(&files, "npm pack")
}
