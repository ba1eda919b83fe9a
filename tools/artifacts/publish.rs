//! Files that appear whole: others see them under their name only once they are written.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tempfile::NamedTempFile;

use crate::error::{At, Result};

/// A new file beside its final name, readable as others are.
pub fn partial_in(folder: &Path) -> io::Result<NamedTempFile> {
    tempfile::Builder::new()
        .prefix(".partial-")
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(folder)
}

/// Creates or replaces `path` at once: nobody sees a part of it.
pub fn publish(
    folder: &Path,
    path: &Path,
    write: impl FnOnce(&mut NamedTempFile) -> io::Result<()>,
) -> Result<()> {
    let mut partial = partial_in(folder).at("create a file in", folder)?;
    write(&mut partial).at("write", path)?;
    let replaced = partial.persist(path).map_err(|failed| failed.error);
    replaced.at("replace", path)?;
    Ok(())
}
