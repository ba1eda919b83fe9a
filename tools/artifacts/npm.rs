//! Files from the npm registry, through the machine's own npm.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cancel::Cancel;
use crate::error::{At, Error, Result};
use crate::pip::only_file;
use crate::process;

/// Downloads `package@version` into `folder`; the caller verifies it.
pub fn download(package: &str, version: &str, folder: &Path, cancel: &Cancel) -> Result<PathBuf> {
    let files = folder.join("files");
    fs::create_dir(&files).at("create", &files)?;
    let mut command = Command::new("npm");
    // No script of a package runs; the lock names packages of the registry only, never a URL.
    command.args([
        "pack",
        "--ignore-scripts",
        "--loglevel=error",
        "--pack-destination",
    ]);
    command
        .arg(&files)
        .args(["--", &format!("{package}@{version}")]);
    command.current_dir(folder);
    process::run(&mut command, &folder.join("log"), cancel, || Ok(()))?;
    only_file(&files, "npm pack")
}

/// Extracts one file of a package next to it; the caller verifies it.
pub fn member(package: &Path, member: &str) -> Result<PathBuf> {
    let path = package.with_extension("member");
    let file = File::create(&path).at("create", &path)?;
    // To standard output, so that the archive has no say in where anything is written.
    let mut command = Command::new("tar");
    command.args(["--extract", "--gzip", "--to-stdout", "--file"]);
    command.arg(package).args(["--", member]).stdout(file);
    let status = command.status().at("start", Path::new("tar"))?;
    if !status.success() {
        return Err(Error::Refused(format!(
            "{}: tar cannot find `{member}` in it",
            package.display()
        )));
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_file_is_taken_out_and_nothing_else_is_written() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().join("package");
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("program"), b"bytes").unwrap();
        let package = scratch.path().join("a.tgz");
        let mut tar = Command::new("tar");
        tar.current_dir(scratch.path());
        assert!(tar
            .args(["czf", "a.tgz", "package"])
            .status()
            .unwrap()
            .success());
        fs::remove_dir_all(folder).unwrap();

        let taken = member(&package, "package/program").unwrap();
        assert_eq!(fs::read(taken).unwrap(), b"bytes");
        let error = member(&package, "package/other").unwrap_err();
        assert!(error.to_string().contains("package/other"), "{error}");
        assert!(!scratch.path().join("package").exists());
    }
}
