//! The folder of built variants, of which nothing is believed before it is checked.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::record::{digest, Record, RECORD, SCHEMA};
use crate::Wanted;

/// Why there are no kernels to use. The message ends with the command that builds them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Missing {
    #[error("{wanted} is not built; run `{command}`, or add --build-missing")]
    Absent { wanted: String, command: String },
    #[error("{wanted} cannot be used: {reason}; run `{command}` to build it anew")]
    Unusable {
        wanted: String,
        reason: String,
        command: String,
    },
}

/// Where variants are.
#[derive(Clone, Debug)]
pub struct Store {
    root: Option<PathBuf>,
}

/// A variant whose record is sound. Its files are checked when they are read.
#[derive(Clone, Debug)]
pub struct Built {
    pub wanted: Wanted,
    pub record: Record,
    folder: PathBuf,
}

impl Store {
    /// In the user's cache: `$HEAD_TO_HEAD_CACHE`, or `head-to-head` under `$XDG_CACHE_HOME` or `~/.cache`.
    pub fn of_user() -> Self {
        let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let ours = |base: PathBuf| base.join("head-to-head");
        let cache = set("HEAD_TO_HEAD_CACHE")
            .map(PathBuf::from)
            .or_else(|| set("XDG_CACHE_HOME").map(|base| ours(base.into())))
            .or_else(|| set("HOME").map(|home| ours(Path::new(&home).join(".cache"))));
        Self {
            root: cache.map(|cache| cache.join("on-demand")),
        }
    }

    pub fn at(root: PathBuf) -> Self {
        Self { root: Some(root) }
    }

    /// Where a variant is or would be; none without a home folder.
    pub fn folder(&self, wanted: &Wanted) -> Option<PathBuf> {
        Some(self.root.as_ref()?.join(wanted.to_string()))
    }

    /// The variant, if this program's version of the recipe built it for this machine.
    pub fn find(&self, wanted: &Wanted) -> Result<Built, Missing> {
        let version = wanted.version();
        let folder = self.folder(wanted).filter(|folder| folder.exists());
        let Some(folder) = folder else {
            return Err(Missing::Absent {
                wanted: wanted.to_string(),
                command: wanted.command(),
            });
        };
        let built = read_record(&folder).and_then(|record| {
            check(&record, wanted, version.as_deref().unwrap_or("no version"))?;
            Ok(Built {
                wanted: wanted.clone(),
                record,
                folder,
            })
        });
        built.map_err(|reason| unusable(wanted, reason))
    }
}

fn unusable(wanted: &Wanted, reason: String) -> Missing {
    Missing::Unusable {
        wanted: wanted.to_string(),
        reason,
        command: wanted.command(),
    }
}

fn read_record(folder: &Path) -> Result<Record, String> {
    only_ours(folder)?;
    let text = read(&folder.join(RECORD))?;
    serde_json::from_slice(&text).map_err(|error| format!("{RECORD}: {error}"))
}

fn check(record: &Record, wanted: &Wanted, version: &str) -> Result<(), String> {
    let cpu = std::env::consts::ARCH;
    if record.schema != SCHEMA {
        Err(format!("its schema is {}, not {SCHEMA}", record.schema))
    } else if record.name != wanted.to_string() {
        Err(format!("it is {}", record.name))
    } else if record.version != version {
        let built = &record.version;
        Err(format!(
            "recipe {built} built it, this program has {version}"
        ))
    } else if record.cpu != cpu {
        Err(format!("it is for {}, not {cpu}", record.cpu))
    } else {
        Ok(())
    }
}

impl Built {
    /// A file's bytes, if they have their digest.
    pub fn read(&self, file: &str) -> Result<Vec<u8>, Missing> {
        let bytes = self.record.files.get(file).map_or_else(
            || Err(format!("its record has no {file}")),
            |recorded| {
                let bytes = read(&self.folder.join(file))?;
                let actual = digest(&bytes);
                let same = actual == *recorded;
                let different = format!("{file} has sha256 {actual}, its record says {recorded}");
                same.then_some(bytes).ok_or(different)
            },
        );
        bytes.map_err(|reason| self.unusable(reason))
    }

    pub(crate) fn unusable(&self, reason: String) -> Missing {
        unusable(&self.wanted, reason)
    }
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
}

/// What is here is executed, so whoever can write here can execute.
fn only_ours(folder: &Path) -> Result<(), String> {
    let data = |path: &Path| {
        fs::metadata(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
    };
    let us = data(Path::new("/proc/self"))?.uid();
    for path in [Some(folder), folder.parent()].into_iter().flatten() {
        let data = data(path)?;
        let others = data.mode() & 0o022 != 0 || (data.uid() != us && data.uid() != 0);
        if others {
            let path = path.display();
            return Err(format!("others can write to {path}"));
        }
    }
    Ok(())
}
