//! From a library's name to its functions.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use libloading::os::unix::{Library as Handle, RTLD_GLOBAL, RTLD_LAZY};

use crate::digest::Digests;
use crate::find::Surroundings;
use crate::lock::{self, Entry};
use crate::{mapped, Error, Library, Source};

/// A library to be loaded.
pub struct Wanted {
    /// Its name in result files.
    pub name: &'static str,
    /// The lock artifact it comes from.
    pub artifact: &'static str,
    /// The variable that names a file, or its folder, to load instead of the lock's.
    pub variable: &'static str,
    pub runs_on: Processor,
    /// Its files, dependencies first. The last one has the functions.
    pub files: &'static [&'static str],
    /// Libraries that it opens by name; they are opened before it. A missing one may never be needed;
    /// if it is, [`crate::only_recorded`] notices.
    pub needs: &'static [&'static Wanted],
    /// Libraries that it is linked with; they are opened before it too, and it cannot be without them.
    pub links: &'static [&'static Wanted],
    /// The version it reports; empty if it reports none, and the lock's version stands for it.
    pub version: fn(&Symbols) -> Result<String, Error>,
}

/// Where a library's work runs, which decides when a build brings it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Processor {
    Cpu,
    Gpu,
}

impl Processor {
    /// How to build a program that brings the library.
    fn remedy(self) -> &'static str {
        match self {
            Processor::Cpu => "on x86-64 without --//bazel/cuda:libraries=none",
            Processor::Gpu => "on a machine with a GPU or with --//bazel/cuda:libraries=lock",
        }
    }
}

/// An open file's functions.
pub struct Symbols {
    handle: Handle,
    file: PathBuf,
}

impl Symbols {
    /// The function with this nul-terminated name.
    ///
    /// # Safety
    /// `T` is the function's type.
    pub unsafe fn get<T: Copy>(&self, name: &[u8]) -> Result<T, Error> {
        let symbol = self.handle.get::<T>(name);
        symbol
            .map(|symbol| *symbol)
            .map_err(|error| Error::Unloadable {
                file: self.file.display().to_string(),
                problem: error.to_string(),
            })
    }
}

/// A library that stays loaded for as long as this exists.
pub struct Opened {
    pub symbols: Symbols,
    /// Itself first, then its dependencies.
    pub records: Vec<Library>,
    _others: Vec<Symbols>,
}

impl Opened {
    /// The file that has the functions.
    pub fn file(&self) -> &Path {
        &self.symbols.file
    }
}

/// Opens a library and its dependencies.
pub fn open(wanted: &'static Wanted) -> Result<Opened, Error> {
    let surroundings = Surroundings::of_process();
    let mut digests = Digests::of_user();
    // Before the others, so that the error is about the library that was asked for.
    let checked = check_named(wanted, &surroundings, &mut digests)?;
    let mut others = Vec::new();
    let mut records = Vec::new();
    let needs = wanted.needs.iter().map(|need| (need, false));
    let links = wanted.links.iter().map(|link| (link, true));
    for (other, linked) in needs.chain(links) {
        let checked = check_named(other, &surroundings, &mut digests);
        match checked.and_then(|checked| load_checked(other, checked)) {
            Ok((symbols, record)) => {
                others.extend(symbols);
                records.push(record);
            }
            Err(Error::Absent { .. }) if !linked => {}
            Err(error) => return Err(error),
        }
    }
    let (mut symbols, record) = load_checked(wanted, checked)?;
    records.insert(0, record);
    let last = symbols.pop().expect("a library has files");
    others.extend(symbols);
    Ok(Opened {
        symbols: last,
        records,
        _others: others,
    })
}

/// The folder of files that a library reads instead of loading them: headers for a compiler.
pub fn folder(wanted: &'static Wanted) -> Result<(PathBuf, Library), Error> {
    let checked = check_named(wanted, &Surroundings::of_process(), &mut Digests::of_user())?;
    let main = checked.files.last().expect("there are files");
    let folder = main.parent().unwrap_or(Path::new("/")).to_owned();
    let entry = lock::entry(wanted.artifact);
    Ok((folder, checked.record(wanted, String::new(), entry)))
}

/// Checks what the variable names, or else the lock's files.
fn check_named(
    wanted: &'static Wanted,
    surroundings: &Surroundings,
    digests: &mut Digests,
) -> Result<Checked, Error> {
    let variable = std::env::var_os(wanted.variable).filter(|value| !value.is_empty());
    let entry = lock::entry(wanted.artifact);
    check(wanted, variable, entry, surroundings, digests)
}

fn load_checked(
    wanted: &'static Wanted,
    checked: Checked,
) -> Result<(Vec<Symbols>, Library), Error> {
    let symbols = load(&checked.files)?;
    let version = (wanted.version)(symbols.last().expect("a library has files"))?;
    let entry = lock::entry(wanted.artifact);
    Ok((symbols, checked.record(wanted, version, entry)))
}

/// Files whose bytes are known and allowed.
#[derive(Debug)]
struct Checked {
    source: Source,
    files: Vec<PathBuf>,
    sha256: BTreeMap<String, String>,
}

impl Checked {
    fn record(self, wanted: &Wanted, version: String, entry: Option<&Entry>) -> Library {
        let artifact = entry.filter(|entry| entry.has(&self.sha256));
        let version = match artifact {
            Some(entry) if version.is_empty() => entry.artifact.version.clone(),
            None if version.is_empty() => "unknown".to_owned(),
            _ => version,
        };
        Library {
            name: wanted.name.to_owned(),
            version,
            source: self.source,
            artifact: artifact.map(|entry| entry.artifact.clone()),
            files: self.sha256,
        }
    }
}

/// Finds the library, and checks that its bytes match the lock unless the user named others.
fn check(
    wanted: &'static Wanted,
    variable: Option<OsString>,
    entry: Option<&Entry>,
    surroundings: &Surroundings,
    digests: &mut Digests,
) -> Result<Checked, Error> {
    let main = *wanted.files.last().expect("a library has files");
    if let Some(place) = variable {
        let files = overriding(wanted, &surroundings.working.join(&place), main)?;
        let sha256 = hash(&files, digests)?;
        return Ok(Checked {
            source: Source::Override,
            files,
            sha256,
        });
    }
    let folder = surroundings.folder_with(main).ok_or(Error::Absent {
        name: wanted.name,
        file: main,
        build: wanted.runs_on.remedy(),
        variable: wanted.variable,
    })?;
    let entry = entry.ok_or(Error::Unpinned {
        artifact: wanted.artifact,
    })?;
    if let Some(file) = wanted
        .files
        .iter()
        .find(|file| !folder.join(file).is_file())
    {
        return Err(Error::Incomplete {
            folder: folder.display().to_string(),
            file,
            artifact: wanted.artifact,
        });
    }
    let files: Vec<PathBuf> = wanted.files.iter().map(|file| folder.join(file)).collect();
    let sha256 = hash(&files, digests)?;
    for file in wanted.files {
        let expected = entry.files.get(*file).ok_or(Error::Unpinned {
            artifact: wanted.artifact,
        })?;
        if sha256[*file] != *expected {
            return Err(Error::Changed {
                file: folder.join(file).display().to_string(),
                expected: expected.clone(),
                actual: sha256[*file].clone(),
                variable: wanted.variable,
            });
        }
    }
    Ok(Checked {
        source: Source::Lock,
        files,
        sha256,
    })
}

/// The user's file, after those parts found beside it: another version may have fewer, with other
/// numbers in their names.
fn overriding(wanted: &Wanted, place: &Path, main: &str) -> Result<Vec<PathBuf>, Error> {
    let file = match place.is_dir() {
        true => place.join(main),
        false => place.to_owned(),
    };
    if !file.is_file() {
        return Err(Error::Override {
            variable: wanted.variable,
            place: place.display().to_string(),
            problem: format!("there is no {main}; give the file or its folder"),
        });
    }
    let parts = &wanted.files[..wanted.files.len() - 1];
    let beside = parts.iter().filter_map(|part| part_beside(&file, part));
    Ok(beside.chain([file.clone()]).collect())
}

fn part_beside(file: &Path, part: &str) -> Option<PathBuf> {
    let exact = file.with_file_name(part);
    if exact.is_file() {
        return Some(exact);
    }
    let (stem, _number) = part.split_once(".so.")?;
    let entries = file.parent()?.read_dir().ok()?.flatten();
    let mut others: Vec<PathBuf> = entries
        .filter(|entry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            name.split_once(".so.")
                .is_some_and(|(other, _)| other == stem)
        })
        .map(|entry| entry.path())
        .collect();
    others.sort();
    others.pop()
}

fn hash(files: &[PathBuf], digests: &mut Digests) -> Result<BTreeMap<String, String>, Error> {
    let hashed = files.iter().zip(digests.of(files));
    hashed
        .map(|(file, digest)| {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            let digest = digest.map_err(|error| Error::Unloadable {
                file: file.display().to_string(),
                problem: error.to_string(),
            })?;
            Ok((name.into_owned(), digest))
        })
        .collect()
}

/// Opens all of them, so that each finds the others already loaded, by name, before it searches.
fn load(files: &[PathBuf]) -> Result<Vec<Symbols>, Error> {
    mapped::remember(files);
    files
        .iter()
        .map(|file| {
            // SAFETY: runs the library's initialisers, which have no requirements of their own.
            let opened = unsafe { Handle::open(Some(file), RTLD_LAZY | RTLD_GLOBAL) };
            let handle = opened.map_err(|error| Error::Unloadable {
                file: file.display().to_string(),
                problem: error.to_string(),
            })?;
            Ok(Symbols {
                handle,
                file: file.clone(),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests;
