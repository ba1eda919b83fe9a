//! The Python interpreter that runs pip and the recipes.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::{Error, Result};

#[derive(Debug, Clone)]
pub struct Python {
    pub program: PathBuf,
    /// As in wheel names: `cp311`.
    pub tag: String,
}

const CANDIDATES: [&str; 4] = ["python3", "python3.13", "python3.12", "python3.11"];
const TAG: &str = "import sys; cpython = sys.implementation.name == 'cpython'; \
                   print(('cp' if cpython else 'py') + '%d%d' % sys.version_info[:2])";

impl Python {
    /// The first interpreter that `fits`; `wanted`, if given, is the only candidate.
    pub fn find(wanted: Option<&Path>, fits: impl Fn(&Python) -> bool) -> Result<Self> {
        let candidates: Vec<PathBuf> = match wanted {
            Some(path) => vec![path.to_path_buf()],
            None => CANDIDATES.iter().map(PathBuf::from).collect(),
        };
        let found: Vec<_> = candidates
            .iter()
            .filter_map(|path| Self::ask(path))
            .collect();
        let seen: Vec<_> = found.iter().map(|python| python.tag.clone()).collect();
        found.into_iter().find(fits).ok_or_else(|| {
            Error::Refused(format!(
                "no suitable Python among {candidates:?} (found: {seen:?}); install CPython 3.11, 3.12 \
                or 3.13, or select it with --python or HEAD_TO_HEAD_PYTHON"
            ))
        })
    }

    fn ask(program: &Path) -> Option<Self> {
        let output = Command::new(program)
            .args(["-I", "-S", "-c", TAG])
            .output()
            .ok()?;
        let tag = String::from_utf8(output.stdout).ok()?.trim().to_owned();
        (output.status.success() && !tag.is_empty()).then(|| Self {
            program: program.to_path_buf(),
            tag,
        })
    }

    /// Whether a wheel with this file name can be imported.
    pub fn imports(&self, file: &str) -> bool {
        let Some(stem) = file.strip_suffix(".whl") else {
            return false;
        };
        let tags: Vec<_> = stem.rsplitn(4, '-').collect();
        let [platforms, abi, python, ..] = tags[..] else {
            return false;
        };
        let mut platforms = platforms.split('.');
        if !platforms.any(|tag| tag == "any" || tag.ends_with(std::env::consts::ARCH)) {
            return false;
        }
        match (abi, version(python), version(&self.tag)) {
            ("none", _, _) if python.starts_with("py") => true,
            ("abi3", Some(built), Some(ours)) => built <= ours,
            _ => python == self.tag,
        }
    }
}

/// `cp311` as 311.
fn version(tag: &str) -> Option<u32> {
    tag.strip_prefix("cp")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chooses_wheels() {
        let python = Python {
            program: "python3".into(),
            tag: "cp312".into(),
        };
        let other = match std::env::consts::ARCH {
            "x86_64" => "aarch64",
            _ => "x86_64",
        };
        for (file, fits) in [
            ("einops-0.8.2-py3-none-any.whl", true),
            ("protobuf-7.36.2-cp310-abi3-manylinux2014_CPU.whl", true),
            ("protobuf-7.36.2-cp313-abi3-manylinux2014_CPU.whl", false),
            ("protobuf-7.36.2-cp310-abi3-manylinux2014_OTHER.whl", false),
            ("triton-3.6.0-cp312-cp312-manylinux_2_28_CPU.whl", true),
            ("triton-3.6.0-cp311-cp311-manylinux_2_28_CPU.whl", false),
            ("triton-3.6.0-cp312-cp312-manylinux_2_28_OTHER.whl", false),
            ("flash_attn-2.8.3.tar.gz", false),
        ] {
            let file = file.replace("CPU", std::env::consts::ARCH);
            let file = file.replace("OTHER", other);
            assert_eq!(python.imports(&file), fits, "{file}");
        }
    }
}
