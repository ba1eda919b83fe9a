//! What a result file records about a loaded library.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// A library, identified by its bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Library {
    pub name: String,
    /// The version it reports.
    pub version: String,
    pub source: Source,
    /// The lock artifact with these bytes, wherever they were found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact: Option<Artifact>,
    /// The sha256 of every file opened.
    pub files: BTreeMap<String, String>,
}

/// Who chose the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The artifact lock.
    Lock,
    /// The user, by a variable.
    Override,
}

/// A file that the lock pins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Artifact {
    pub name: String,
    pub version: String,
    pub sha256: String,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Source::Lock => "lock",
            Source::Override => "override",
        })
    }
}

/// One line: an artifact is named instead of its files.
impl fmt::Display for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} from {}", self.name, self.version, self.source)?;
        match &self.artifact {
            Some(Artifact {
                name,
                version,
                sha256,
            }) => write!(f, ": {name} {version} sha256 {sha256}"),
            None => self
                .files
                .iter()
                .try_for_each(|(file, sha256)| write!(f, ": {file} sha256 {sha256}")),
        }
    }
}
