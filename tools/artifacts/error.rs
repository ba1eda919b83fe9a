//! Errors, worded to name the value and the remedy.

use std::io;
use std::path::{Path, PathBuf};

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot {action} {}: {source}{}", path.display(), remedy(source))]
    Io {
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error("{}:{line}: {message}", path.display())]
    Lock {
        path: PathBuf,
        line: usize,
        message: String,
    },
    #[error(
        "{what}: sha256 is {actual}, the lock says {expected}; nothing was kept{}",
        OTHER_BYTES
    )]
    Digest {
        what: String,
        expected: String,
        actual: String,
    },
    #[error(
        "{what}: {actual} bytes, the lock says {expected}; nothing was kept{}",
        OTHER_BYTES
    )]
    Size {
        what: String,
        expected: u64,
        actual: u64,
    },
    #[error("{url}: {message}")]
    Transfer { url: String, message: String },
    #[error("{url}: HTTP {status}{}", status_remedy(*status))]
    Status { url: String, status: u16 },
    #[error("{url}: redirected in a loop or too often")]
    Redirects { url: String },
    #[error("{}: entry {entry:?} {message}; nothing was unpacked", archive.display())]
    Archive {
        archive: PathBuf,
        entry: String,
        message: String,
    },
    #[error("{program}: {message}")]
    Program { program: String, message: String },
    #[error("{name}: no source worked{}", listed(attempts))]
    Sources { name: String, attempts: Vec<String> },
    #[error("interrupted; completed files are kept, run the same command to continue")]
    Interrupted,
    #[error("{0}")]
    Refused(String),
}

const OTHER_BYTES: &str = "; try another mirror, or `artifacts pin` if it was meant to change";

/// Names the path and the action of a failed file operation.
pub trait At<T> {
    fn at(self, action: &'static str, path: &Path) -> Result<T>;
}

impl<T> At<T> for io::Result<T> {
    fn at(self, action: &'static str, path: &Path) -> Result<T> {
        self.map_err(|source| Error::Io {
            action,
            path: path.to_path_buf(),
            source,
        })
    }
}

fn remedy(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "; free some space (`artifacts gc`) or point HEAD_TO_HEAD_CACHE at another disk"
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "; make it writable or point HEAD_TO_HEAD_CACHE at a folder that is"
        }
        _ => "",
    }
}

fn status_remedy(status: u16) -> &'static str {
    match status {
        401 | 403 => " (forbidden: check the credentials or the link)",
        404 | 410 => " (not found: check the link or use another mirror)",
        _ => "",
    }
}

fn listed(attempts: &[String]) -> String {
    attempts
        .iter()
        .map(|attempt| format!("\n  {attempt}"))
        .collect()
}
