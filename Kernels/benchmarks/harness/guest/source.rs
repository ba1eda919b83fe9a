//! What `--contender` says: a name, a library or the description of a kernel, and text for the library.

use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use sha2::{Digest, Sha256};

/// How the names of files end that describe a kernel.
const DESCRIPTION: &str = ".json";

/// `mine=./libmine.so?variant=2`; name and text may be left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    pub name: String,
    pub path: PathBuf,
    /// Passed to the library as it is.
    pub options: String,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SourceError {
    #[error(
        "'{0}' names no file: expected ./libmine.so, mine=./libmine.so?text, or ./kernel.json"
    )]
    Empty(String),
    #[error("'{0}' is no name for a contender: use letters, digits, and any of _ - . +")]
    Name(String),
    #[error("cannot read {path}: {error}")]
    Unreadable { path: String, error: String },
}

impl FromStr for Source {
    type Err = SourceError;

    fn from_str(text: &str) -> Result<Self, SourceError> {
        let (place, options) = text.split_once('?').unwrap_or((text, ""));
        let (name, path) = match place.split_once('=') {
            Some((name, path)) => (name.to_owned(), path),
            None => (stem(Path::new(place)), place),
        };
        if path.is_empty() {
            return Err(SourceError::Empty(text.to_owned()));
        }
        let plain = |c: char| c.is_ascii_alphanumeric() || "_-.+".contains(c);
        if name.is_empty() || !name.chars().all(plain) {
            return Err(SourceError::Name(name));
        }
        Ok(Self {
            name,
            path: path.into(),
            options: options.to_owned(),
        })
    }
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}={}", self.name, self.path.display())?;
        match self.options.is_empty() {
            true => Ok(()),
            false => write!(f, "?{}", self.options),
        }
    }
}

/// `mine` of `libmine.so.1` and of `mine.json`.
fn stem(path: &Path) -> String {
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    if let Some(name) = file.strip_suffix(DESCRIPTION) {
        return name.to_owned();
    }
    let file = file.strip_prefix("lib").unwrap_or(&file);
    let end = file.find(".so").unwrap_or(file.len());
    file[..end].to_owned()
}

impl Source {
    /// Whether it is a kernel without host code.
    pub fn is_description(&self) -> bool {
        self.path.to_string_lossy().ends_with(DESCRIPTION)
    }

    /// The digest of the library's file, which says what was raced.
    pub fn sha256(&self) -> Result<String, SourceError> {
        let unreadable = |error: io::Error| SourceError::Unreadable {
            path: self.path.display().to_string(),
            error: error.to_string(),
        };
        let bytes = workspace::read(&self.path, u64::MAX).map_err(unreadable)?;
        let digest = Sha256::digest(bytes);
        Ok(digest.iter().map(|byte| format!("{byte:02x}")).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_options_may_be_left_out() {
        let source = |text: &str| text.parse::<Source>();
        let whole = source("mine=./a/libmine.so?variant=2&b=?").unwrap();
        assert_eq!((&*whole.name, &*whole.options), ("mine", "variant=2&b=?"));
        assert_eq!(whole.path, Path::new("./a/libmine.so"));
        assert_eq!(whole.to_string().parse(), Ok(whole.clone()));
        assert_eq!(source("out/libfast_norm.so.1").unwrap().name, "fast_norm");
        assert_eq!(source("kernel").unwrap().name, "kernel");
        let kernel = source("./out/fast.json").unwrap();
        assert_eq!((&*kernel.name, kernel.is_description()), ("fast", true));
        assert!(!whole.is_description());
        for bad in ["", "mine=", "=lib.so", "a,b=lib.so", "?x", ".so"] {
            assert!(source(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_missing_library_is_named() {
        let source: Source = "/nowhere/libmine.so".parse().unwrap();
        let error = source.sha256().unwrap_err().to_string();
        assert!(error.contains("/nowhere/libmine.so"), "{error}");
    }

    #[test]
    fn what_may_never_end_is_not_read() {
        for path in ["/dev/zero", "/"] {
            let source: Source = format!("mine={path}").parse().unwrap();
            let error = source.sha256().unwrap_err().to_string();
            assert!(error.contains("it is not a file"), "{error}");
        }
    }
}
