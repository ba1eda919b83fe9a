//! Files from the Python package registry, through the machine's own pip, so that its index, proxy
//! and certificate settings apply and no host is named here.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use indicatif::ProgressBar;

use crate::cancel::Cancel;
use crate::digest::Digest;
use crate::error::{At, Error, Result};
use crate::lock::{is_package, is_version};
use crate::process;
use crate::python::Python;

/// Which file of a package.
pub struct Wanted<'a> {
    pub package: &'a str,
    /// The newest if None.
    pub version: Option<&'a str>,
    pub kind: Kind,
    /// Checked by pip too, before it looks into the file.
    pub digest: Option<Digest>,
    /// Larger files are rejected.
    pub size: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// For a Python version such as 311, on any of these platforms.
    Wheel {
        python: String,
        platforms: Vec<String>,
    },
    Sdist,
}

impl Kind {
    /// What the file name tells.
    pub fn of(file: &str) -> Self {
        let Some(stem) = file.strip_suffix(".whl") else {
            return Self::Sdist;
        };
        let tags: Vec<_> = stem.rsplitn(4, '-').collect();
        let platforms = tags[0].split('.').map(str::to_owned).collect();
        let python = tags
            .get(2)
            .and_then(|tag| tag.strip_prefix("cp"))
            .unwrap_or(ANY_PYTHON);
        Self::Wheel {
            python: python.to_owned(),
            platforms,
        }
    }

    /// A wheel for Linux on this CPU, for any glibc.
    pub fn any_wheel(python: &str, cpu: &str) -> Self {
        let old = ["manylinux1", "manylinux2010", "manylinux2014"];
        let old = old.iter().map(|policy| format!("{policy}_{cpu}"));
        let new = (5..=39).map(|minor| format!("manylinux_2_{minor}_{cpu}"));
        // Anything for all CPUs is pinned once, under its plain name.
        let any = (cpu == DEFAULT_CPU).then(|| "any".to_owned());
        Self::Wheel {
            python: python.to_owned(),
            platforms: any.into_iter().chain(old).chain(new).collect(),
        }
    }
}

/// The CPU of artifacts without a CPU suffix.
pub const DEFAULT_CPU: &str = "x86_64";

/// For wheels that do not depend on it; pip checks it against Requires-Python.
pub const ANY_PYTHON: &str = "311";

/// `-m pip` would take a pip.py of the folder that the user happens to be in.
pub const PIP: &str = "import sys; sys.path = [p for p in sys.path if p not in ('', '.')]; \
                       import runpy; runpy.run_module('pip', run_name='__main__', alter_sys=True)";

/// Downloads into `folder`, which must be empty, and returns the file.
pub fn download(
    python: &Python,
    wanted: &Wanted,
    folder: &Path,
    bar: &ProgressBar,
    cancel: &Cancel,
) -> Result<PathBuf> {
    let make = |name| -> Result<PathBuf> {
        let path = folder.join(name);
        fs::create_dir(&path).at("create", &path)?;
        Ok(path)
    };
    let (files, temporary) = (make("files")?, make("temporary")?);
    let requirements = folder.join("requirements.txt");
    fs::write(&requirements, wanted.requirement()).at("write", &requirements)?;

    wanted.check()?;
    let mut command = Command::new(&python.program);
    command.args([
        "-c",
        PIP,
        "download",
        "--no-deps",
        "--no-input",
        "--no-cache-dir",
    ]);
    command.args(["--disable-pip-version-check", "--progress-bar", "off"]);
    command
        .arg("--requirement")
        .arg(&requirements)
        .arg("--dest")
        .arg(&files);
    // pip downloads to its temporary folder, where progress and size can be watched.
    command.env("TMPDIR", &temporary);
    match &wanted.kind {
        Kind::Wheel { python, platforms } => {
            command.args(["--only-binary", ":all:", "--implementation", "cp"]);
            command.args(["--python-version", python]);
            for platform in platforms {
                command.args(["--platform", platform]);
            }
        }
        Kind::Sdist => {
            let backend = make("backend")?;
            write_backend(&backend, wanted)?;
            command.args([
                "--no-binary",
                ":all:",
                "--no-build-isolation",
                "--use-pep517",
            ]);
            command.env("PYTHONPATH", backend);
        }
    }
    process::run(&mut command, &folder.join("log"), cancel, || {
        let bytes = largest_file(&temporary);
        bar.set_position(bytes);
        match wanted.size {
            Some(expected) if bytes > expected => Err(Error::Size {
                what: wanted.package.to_owned(),
                expected,
                actual: bytes,
            }),
            _ => Ok(()),
        }
    })?;
    only_file(&files, "pip download")
}

impl Wanted<'_> {
    /// The name and version are words of a requirements file, and of a program.
    fn check(&self) -> Result<()> {
        let version = self.version.is_none_or(is_version);
        match version && is_package("pypi", self.package) {
            true => Ok(()),
            false => Err(Error::Refused(format!(
                "{} {}: not a package and a version",
                self.package,
                self.version.unwrap_or_default()
            ))),
        }
    }

    fn requirement(&self) -> String {
        let version = self
            .version
            .map(|version| format!("=={version}"))
            .unwrap_or_default();
        // One hash in a requirements file makes pip demand hashes of everything in it.
        let hash = self.digest.map(|digest| format!(" --hash=sha256:{digest}"));
        format!("{}{version}{}\n", self.package, hash.unwrap_or_default())
    }
}

/// Runs first in every Python that pip starts: whichever backend the sdist names, in whichever folder,
/// ours is asked; and if pip has another way to name it, nothing is.
const SITE: &str = r#"import os, sys
named = [v for v in ("_PYPROJECT_HOOKS_BUILD_BACKEND", "PEP517_BUILD_BACKEND") if v in os.environ]
for variable in named:
    os.environ[variable] = "head_to_head_backend"
for variable in ("_PYPROJECT_HOOKS_BACKEND_PATH", "PEP517_BACKEND_PATH"):
    os.environ.pop(variable, None)
words = getattr(sys, "orig_argv", sys.argv)
if not named and any(w.endswith("_in_process.py") or "setup.py" in w for w in words):
    os._exit(1)
"#;

/// pip queries an sdist's build backend for metadata even when it only downloads. This backend
/// answers from the lock, so that no code of the sdist runs and none of its dependencies are
/// installed.
fn write_backend(folder: &Path, wanted: &Wanted) -> Result<()> {
    let name = wanted.package;
    let version = wanted.version.ok_or_else(|| {
        Error::Refused(format!(
            "{name}: a source package needs a version: {name}@VERSION"
        ))
    })?;
    let source = format!(
        r#"import os
def get_requires_for_build_wheel(config_settings=None):
    return []
def prepare_metadata_for_build_wheel(folder, config_settings=None):
    info = "{}-{version}.dist-info"
    os.makedirs(os.path.join(folder, info))
    with open(os.path.join(folder, info, "METADATA"), "w") as file:
        file.write("Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    return info
"#,
        name.replace('-', "_")
    );
    for (file, text) in [
        ("sitecustomize.py", SITE),
        ("head_to_head_backend.py", &source[..]),
    ] {
        let path = folder.join(file);
        fs::write(&path, text).at("write", &path)?;
    }
    Ok(())
}

fn largest_file(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else {
        return 0;
    };
    let sizes = entries.flatten().map(|entry| match entry.metadata() {
        Ok(data) if data.is_dir() => largest_file(&entry.path()),
        Ok(data) => data.len(),
        Err(_) => 0,
    });
    sizes.max().unwrap_or(0)
}

/// The single file requested from a registry's client.
pub fn only_file(folder: &Path, program: &str) -> Result<PathBuf> {
    let entries = fs::read_dir(folder).at("read", folder)?;
    let files: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    if let [file] = &files[..] {
        return Ok(file.clone());
    }
    let message = format!("left {} files, not one", files.len());
    Err(Error::Program {
        program: program.to_owned(),
        message,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_file_names() {
        let platforms = vec![
            "manylinux2014_x86_64".to_owned(),
            "manylinux_2_17_x86_64".to_owned(),
        ];
        let file =
            "nvidia_cuda_crt-13.0.88-py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl";
        assert_eq!(
            Kind::of(file),
            Kind::Wheel {
                python: ANY_PYTHON.into(),
                platforms
            }
        );
        let cp312 = Kind::Wheel {
            python: "312".into(),
            platforms: vec!["linux_x86_64".into()],
        };
        assert_eq!(Kind::of("a-1-cp312-cp312-linux_x86_64.whl"), cp312);
        assert_eq!(Kind::of("flash_attn-2.8.3.tar.gz"), Kind::Sdist);
    }
}
