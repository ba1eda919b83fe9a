//! The part of the artifact lock that is compiled in: libraries, and the sha256 of their files.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::Artifact;

/// An artifact and those of its files that are loaded, by name.
#[derive(Debug, Deserialize)]
pub(crate) struct Entry {
    #[serde(flatten)]
    pub artifact: Artifact,
    pub files: BTreeMap<String, String>,
}

static LOCK: LazyLock<Vec<Entry>> = LazyLock::new(|| {
    serde_json::from_str(env!("HEAD_TO_HEAD_LOCKED_LIBRARIES"))
        .expect("the build generated it from the lock")
});

/// The artifact that `name` is pinned as.
pub(crate) fn entry(name: &str) -> Option<&'static Entry> {
    LOCK.iter().find(|entry| entry.artifact.name == name)
}

impl Entry {
    /// Whether these files all match it.
    pub fn has(&self, files: &BTreeMap<String, String>) -> bool {
        let same = |(file, sha256): (&String, &String)| self.files.get(file) == Some(sha256);
        files.iter().all(same)
    }
}
