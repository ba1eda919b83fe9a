//! The folder that holds the lock's libraries.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Names the folder, or several separated by colons, if there are no runfiles.
const VARIABLE: &str = "HEAD_TO_HEAD_LIBRARIES";
/// Where the build puts them in the runfiles.
const FOLDER: &str = "_main/Kernels/libraries/lib";

/// Where a release has them, beside its programs.
const BESIDE: &str = "lib";

/// What a process knows about its own location.
pub(crate) struct Surroundings {
    pub variable: Option<OsString>,
    /// The program as it was called, and as the OS sees it, with links resolved.
    pub programs: Vec<PathBuf>,
    pub working: PathBuf,
}

/// The runfiles trees that this process may be part of, whether or not they exist.
pub fn runfiles() -> Vec<PathBuf> {
    Surroundings::of_process().runfiles().collect()
}

impl Surroundings {
    pub fn of_process() -> Self {
        let called = std::env::args_os().next().map(PathBuf::from);
        Self {
            variable: std::env::var_os(VARIABLE).filter(|value| !value.is_empty()),
            programs: called.into_iter().chain(std::env::current_exe()).collect(),
            working: std::env::current_dir().unwrap_or_default(),
        }
    }

    /// The folder with this file: one of those in the variable if it is set; else in the program's
    /// runfiles, in those that the program is part of, in those around the working directory, as
    /// under `bazel run` and `bazel test`, or beside the program.
    pub fn folder_with(&self, file: &str) -> Option<PathBuf> {
        let folders: Vec<PathBuf> = match &self.variable {
            Some(folders) => std::env::split_paths(folders)
                .map(|folder| self.working.join(folder))
                .collect(),
            None => {
                let built = self.runfiles().map(|tree| tree.join(FOLDER));
                built.chain(self.beside_programs()).collect()
            }
        };
        let mut folders = folders.into_iter();
        folders.find(|folder| folder.join(file).is_file())
    }

    /// Where a release has them.
    fn beside_programs(&self) -> impl Iterator<Item = PathBuf> + '_ {
        let programs = self.programs.iter();
        programs.filter_map(|program| Some(self.working.join(program).parent()?.join(BESIDE)))
    }

    fn runfiles(&self) -> impl Iterator<Item = PathBuf> + '_ {
        let own = self.programs.iter().map(|program| {
            let mut own = self.working.join(program).into_os_string();
            own.push(".runfiles");
            PathBuf::from(own)
        });
        let around = self.programs.iter().chain([&self.working]);
        own.chain(around.filter_map(|place| {
            let place = self.working.join(place);
            place.ancestors().find(is_runfiles).map(Path::to_owned)
        }))
    }
}

fn is_runfiles(folder: &&Path) -> bool {
    folder.extension() == Some(OsStr::new("runfiles"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_variable_decides_and_runfiles_are_searched_without_it() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        let lib = root.join("suite.runfiles/_main/Kernels/libraries/lib");
        let other = root.join("carried");
        for folder in [&lib, &other] {
            fs::create_dir_all(folder).unwrap();
            fs::write(folder.join("libx.so"), "").unwrap();
        }
        let from = |variable: Option<&Path>, program: &str, working: &str| {
            let surroundings = Surroundings {
                variable: variable.map(|folder| folder.as_os_str().to_owned()),
                programs: vec![PathBuf::from(program)],
                working: root.join(working),
            };
            surroundings.folder_with("libx.so")
        };
        assert_eq!(from(Some(&other), "suite", ""), Some(other.clone()));
        let several = Path::new("nowhere:carried");
        assert_eq!(from(Some(several), "x", ""), Some(other));
        assert_eq!(from(Some(Path::new("nowhere")), "suite", ""), None);
        assert_eq!(from(None, "suite", ""), Some(lib.clone()));
        let inside = "suite.runfiles/_main/Kernels/bench";
        assert_eq!(from(None, inside, ""), Some(lib.clone()));
        assert_eq!(from(None, "/x", "suite.runfiles/_main"), Some(lib));
        assert_eq!(from(None, "/x", ""), None);
        let release = root.join("release/lib");
        fs::create_dir_all(&release).unwrap();
        fs::write(release.join("libx.so"), "").unwrap();
        assert_eq!(from(None, "release/bench", ""), Some(release));
    }
}
