//! Why a library was not loaded, and what to do about it.

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error(
        "{name} is not in the program's runfiles (no {file}): build {build}, run fetch.sh in a \
        release, set HEAD_TO_HEAD_LIBRARIES to a folder with the lock's files, or {variable} to a \
        library of your own"
    )]
    Absent {
        name: &'static str,
        file: &'static str,
        build: &'static str,
        variable: &'static str,
    },
    #[error("{folder} has no {file}, which is part of {artifact}: copy all of its files")]
    Incomplete {
        folder: String,
        file: &'static str,
        artifact: &'static str,
    },
    #[error(
        "{file} has sha256 {actual}, the artifact lock says {expected}; it was not loaded. Rebuild, \
        or set {variable} to it to use it as a library of your own"
    )]
    Changed {
        file: String,
        expected: String,
        actual: String,
        variable: &'static str,
    },
    #[error("{variable} is {place}: {problem}")]
    Override {
        variable: &'static str,
        place: String,
        problem: String,
    },
    #[error("{file} cannot be loaded: {problem}")]
    Unloadable { file: String, problem: String },
    #[error(
        "{file} was loaded, which no row names: unset LD_LIBRARY_PATH and LD_PRELOAD, or name it in \
         {variable}"
    )]
    Unrecorded {
        file: String,
        variable: &'static str,
    },
    #[error("the artifact lock records no digests of {artifact}: pin it with --file")]
    Unpinned { artifact: &'static str },
}
