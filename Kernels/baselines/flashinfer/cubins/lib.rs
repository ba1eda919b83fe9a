//! Cubins that TRT-LLM-gen's runner loads: finds them, and checks their bytes against the library's
//! list.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use thiserror::Error;

/// Names the folder if it is not in the program's runfiles.
pub const VARIABLE: &str = "FLASHINFER_CUBINS";
/// The suffix of the folder's name in the runfiles.
const REPOSITORY: &str = "flashinfer_cubin_sm_100a";
const REMEDY: &str = "unpack them with `./bazelw run //tools/artifacts -- build flashinfer_cubin \
                      --arch sm_100a --unpack FOLDER` and set FLASHINFER_CUBINS to \
                      FOLDER/flashinfer-cubin-sm_100a";

#[derive(Debug, Error)]
pub enum CubinError {
    #[error("the cubins of TRT-LLM-gen are neither in {VARIABLE} nor in the runfiles; {REMEDY}")]
    NoFolder,
    #[error("{VARIABLE} is {folder}, which has no folder 'cubins'; {REMEDY}")]
    WrongFolder { folder: PathBuf },
    #[error("cannot read the cubin {file}: {source}; {REMEDY}")]
    Unreadable { file: PathBuf, source: io::Error },
    #[error(
        "the cubin {file} has sha256 {actual}, its library says {expected}; it was not loaded. \
        Unpack the archive again"
    )]
    Changed {
        file: PathBuf,
        expected: String,
        actual: String,
    },
}

/// The folder that holds `cubins`, for this process.
pub fn folder() -> Result<PathBuf, CubinError> {
    find(std::env::var_os(VARIABLE), &libraries::runfiles())
}

/// In the variable's folder, else in a runfiles tree.
fn find(variable: Option<OsString>, runfiles: &[PathBuf]) -> Result<PathBuf, CubinError> {
    if let Some(folder) = variable {
        let folder = PathBuf::from(folder);
        return if folder.join("cubins").is_dir() {
            Ok(folder)
        } else {
            Err(CubinError::WrongFolder { folder })
        };
    }
    let mut trees = runfiles.iter().map(PathBuf::as_path);
    trees.find_map(repository).ok_or(CubinError::NoFolder)
}

/// The cubins' repository in a runfiles tree; Bazel adds a prefix to its name.
fn repository(runfiles: &Path) -> Option<PathBuf> {
    let ours = |folder: &PathBuf| {
        let name = folder.file_name().and_then(OsStr::to_str);
        name.is_some_and(|name| name.ends_with(REPOSITORY)) && folder.join("cubins").is_dir()
    };
    let entries = fs::read_dir(runfiles).ok()?;
    entries.flatten().map(|entry| entry.path()).find(ours)
}

/// The bytes of a file below `folder`, if they have this sha256.
pub fn read(folder: &Path, path: &str, sha256: &str) -> Result<Vec<u8>, CubinError> {
    let file = folder.join(path);
    let bytes = match fs::read(&file) {
        Ok(bytes) => bytes,
        Err(source) => return Err(CubinError::Unreadable { file, source }),
    };
    let actual = format!("{:x}", Sha256::digest(&bytes));
    if actual != sha256 {
        let expected = sha256.to_owned();
        return Err(CubinError::Changed {
            file,
            expected,
            actual,
        });
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELLO: &str = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";

    /// A private folder of this test.
    fn scratch(name: &str) -> PathBuf {
        let root = std::env::var_os("TEST_TMPDIR").map_or_else(std::env::temp_dir, PathBuf::from);
        let folder = root.join(format!("cubins-{}-{name}", std::process::id()));
        fs::create_dir_all(folder.join("cubins")).unwrap();
        folder
    }

    #[test]
    fn a_file_with_its_sha256_is_read() {
        let folder = scratch("read");
        fs::write(folder.join("cubins/a.cubin"), b"hello").unwrap();
        assert_eq!(read(&folder, "cubins/a.cubin", HELLO).unwrap(), b"hello");
    }

    #[test]
    fn one_changed_bit_is_refused_and_the_file_named() {
        let folder = scratch("changed");
        fs::write(folder.join("cubins/a.cubin"), b"hellO").unwrap();
        let error = read(&folder, "cubins/a.cubin", HELLO).unwrap_err();
        assert!(matches!(error, CubinError::Changed { .. }), "{error}");
        let text = error.to_string();
        assert!(
            text.contains("cubins/a.cubin") && text.contains(HELLO),
            "{text}"
        );
    }

    #[test]
    fn a_file_cut_short_is_refused() {
        let folder = scratch("short");
        fs::write(folder.join("cubins/a.cubin"), b"hell").unwrap();
        assert!(matches!(
            read(&folder, "cubins/a.cubin", HELLO),
            Err(CubinError::Changed { .. })
        ));
    }

    #[test]
    fn a_missing_file_is_named_with_a_remedy() {
        let folder = scratch("missing");
        let text = read(&folder, "cubins/b.cubin", HELLO)
            .unwrap_err()
            .to_string();
        assert!(
            text.contains("b.cubin") && text.contains("--unpack"),
            "{text}"
        );
    }

    #[test]
    fn the_variable_is_taken_first_and_must_be_right() {
        let folder = scratch("variable");
        let found = find(Some(folder.clone().into()), &[]).unwrap();
        assert_eq!(found, folder);
        let wrong = folder.join("cubins");
        let text = find(Some(wrong.into()), &[]).unwrap_err().to_string();
        assert!(text.contains(VARIABLE), "{text}");
    }

    #[test]
    fn runfiles_are_searched() {
        let root = scratch("runfiles");
        let repository = root.join("bench.runfiles/prefix~flashinfer_cubin_sm_100a");
        fs::create_dir_all(repository.join("cubins")).unwrap();
        let trees = [root.join("other.runfiles"), root.join("bench.runfiles")];
        assert_eq!(find(None, &trees).unwrap(), repository);
        let text = find(None, &trees[..1]).unwrap_err().to_string();
        assert!(text.contains("--unpack"), "{text}");
    }
}
