//! Which files are watched, and whether they have changed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use guest::Source;

/// Files with their times and sizes; nothing for one that is not there.
pub type Snapshot = BTreeMap<PathBuf, Option<(SystemTime, u64)>>;

/// The contenders themselves or, if a command builds them, what lies beside them.
pub struct Watched {
    sources: Vec<Source>,
    is_built: bool,
    /// What the command writes, which is not what a user edits.
    outputs: BTreeSet<PathBuf>,
    /// Whether the command has ever ended well, so that its outputs are known.
    outputs_known: bool,
}

impl Watched {
    pub fn new(sources: &[Source], is_built: bool) -> Self {
        Self {
            sources: sources.to_vec(),
            is_built,
            outputs: BTreeSet::new(),
            outputs_known: false,
        }
    }

    pub fn snapshot(&self) -> Snapshot {
        let mut paths = BTreeSet::new();
        for source in &self.sources {
            match self.is_built {
                true => paths.extend(beside(&source.path)),
                false => paths.extend(of(source)),
            }
        }
        let state = |path: PathBuf| {
            let facts = fs::metadata(&path).ok();
            let state = facts.and_then(|facts| Some((facts.modified().ok()?, facts.len())));
            (path, state)
        };
        let watched = paths
            .into_iter()
            .filter(|path| !self.outputs.contains(path));
        watched.map(state).collect()
    }

    /// The command has run. What came meanwhile it has written; what changed, too, if it had never run well before:
    /// later it may be an edit.
    pub fn built(&mut self, since: &Snapshot, well: bool) {
        let now = self.snapshot().into_iter();
        let written = now.filter(|(path, state)| match since.get(path) {
            None => true,
            Some(before) => before != state && !self.outputs_known,
        });
        let written: Vec<PathBuf> = written.map(|(path, _)| path).collect();
        self.outputs.extend(written);
        self.outputs_known |= well;
    }
}

/// A library, or a description and the code that it names.
fn of(source: &Source) -> Vec<PathBuf> {
    let mut paths = vec![source.path.clone()];
    if source.is_description() {
        paths.extend(kernel_file::code_path(&source.path));
    }
    paths
}

/// The files of a folder, but for hidden ones and an editor's copies.
fn beside(path: &Path) -> Vec<PathBuf> {
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let visible = entries.filter(|entry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        is_file && !name.starts_with('.') && !name.ends_with('~') && !name.ends_with(".tmp")
    });
    visible.map(|entry| entry.path()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watched(folder: &Path, is_built: bool) -> Watched {
        let text = format!("mine={}", folder.join("libmine.so").display());
        Watched::new(&[text.parse().unwrap()], is_built)
    }

    #[test]
    fn a_contender_that_changes_or_goes_is_seen() {
        let folder = tempfile::TempDir::new().unwrap();
        let watched = watched(folder.path(), false);
        let library = folder.path().join("libmine.so");
        let none = watched.snapshot();
        fs::write(&library, "1").unwrap();
        let one = watched.snapshot();
        assert_ne!(none, one);
        fs::write(folder.path().join("mine.c"), "int x;").unwrap();
        assert_eq!(watched.snapshot(), one);
        fs::write(&library, "22").unwrap();
        assert_ne!(watched.snapshot(), one);
        fs::remove_file(&library).unwrap();
        assert_eq!(watched.snapshot(), none);
    }

    #[test]
    fn a_described_kernel_is_two_files() {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("kernel.json");
        fs::write(&path, "{\"code\": \"kernel.ptx\"}").unwrap();
        let source = path.to_str().unwrap().parse().unwrap();
        let snapshot = Watched::new(&[source], false).snapshot();
        let names: Vec<_> = snapshot
            .keys()
            .filter_map(|path| path.file_name())
            .collect();
        assert_eq!(names, ["kernel.json", "kernel.ptx"]);
    }

    #[test]
    fn what_a_build_writes_is_not_watched() {
        let folder = tempfile::TempDir::new().unwrap();
        let source = folder.path().join("mine.c");
        for name in ["mine.c", ".mine.c.swp", "mine.c~"] {
            fs::write(folder.path().join(name), "1").unwrap();
        }
        let mut watched = watched(folder.path(), true);
        let seen = watched.snapshot();
        assert_eq!(seen.len(), 1);
        let library = folder.path().join("libmine.so");
        fs::write(&library, "1").unwrap();
        watched.built(&seen, true);
        assert_eq!(watched.snapshot(), seen);
        fs::write(source, "22").unwrap();
        let edited = watched.snapshot();
        assert_ne!(edited, seen);
        // An edit while the next one runs counts.
        fs::write(&library, "22").unwrap();
        watched.built(&seen, true);
        assert_eq!(watched.snapshot(), edited);
    }
}
