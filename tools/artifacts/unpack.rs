//! Unpacks zip archives (including wheels) so that no entry can escape its folder or fill a disk.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

use zip::ZipArchive;

use crate::cancel::Cancel;
use crate::error::{At, Error, Result};

/// How much an archive may hold.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    pub bytes: u64,
    pub entries: usize,
    /// Maximum ratio of unpacked to packed bytes.
    pub ratio: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            bytes: 8 << 30,
            entries: 100_000,
            ratio: 100,
        }
    }
}

/// Unpacks into `folder`, which other archives may share: an entry may not replace a file.
/// All names and sizes are checked before the first byte is written.
pub fn unpack(archive: &Path, folder: &Path, bounds: Bounds, cancel: &Cancel) -> Result<()> {
    let file = File::open(archive).at("open", archive)?;
    let packed = file.metadata().at("read", archive)?.len();
    let mut zip = ZipArchive::new(file).map_err(|error| bad(archive, "", error.to_string()))?;
    check(&mut zip, archive, packed, bounds)?;
    for index in 0..zip.len() {
        cancel.check()?;
        let mut entry = zip
            .by_index(index)
            .map_err(|error| bad(archive, "", error.to_string()))?;
        let name = entry.name().to_owned();
        let path = folder.join(inside(archive, &name)?);
        if entry.is_dir() {
            fs::create_dir_all(&path).at("create", &path)?;
            continue;
        }
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).at("create", parent)?;
        }
        write(&mut entry, &path).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => {
                bad(archive, &name, format!("is damaged: {error}"))
            }
            io::ErrorKind::AlreadyExists => bad(archive, &name, "already exists".into()),
            _ => Error::Io {
                action: "unpack",
                path: path.clone(),
                source: error,
            },
        })?;
    }
    Ok(())
}

fn check(zip: &mut ZipArchive<File>, archive: &Path, packed: u64, bounds: Bounds) -> Result<()> {
    if zip.len() > bounds.entries {
        let message = format!(
            "is one of {}; at most {} are allowed",
            zip.len(),
            bounds.entries
        );
        return Err(bad(archive, "", message));
    }
    let most = bounds.bytes.min(packed.saturating_mul(bounds.ratio));
    let mut total = 0_u64;
    for index in 0..zip.len() {
        let entry = zip
            .by_index_raw(index)
            .map_err(|error| bad(archive, "", error.to_string()))?;
        let name = entry.name().to_owned();
        inside(archive, &name)?;
        // Wheels have no symbolic links, so neither do our archives.
        if entry.is_symlink() {
            return Err(bad(archive, &name, "is a symbolic link".into()));
        }
        total = total.saturating_add(entry.size());
        if total > most {
            let message = format!("brings the unpacked size over {most} bytes");
            return Err(bad(archive, &name, message));
        }
    }
    Ok(())
}

/// The entry's path, if it stays inside.
fn inside(archive: &Path, name: &str) -> Result<PathBuf> {
    let path = Path::new(name);
    let stays = path
        .components()
        .all(|part| matches!(part, Component::Normal(_)));
    if name.is_empty() || !stays || name.contains(['\\', '\0']) {
        return Err(bad(archive, name, "escapes its folder".into()));
    }
    Ok(path.to_path_buf())
}

/// Never more than the size that was checked, whatever the compressed stream does.
fn write(entry: &mut zip::read::ZipFile<'_, File>, path: &Path) -> io::Result<()> {
    let size = entry.size();
    let executable = entry.unix_mode().is_some_and(|mode| mode & 0o111 != 0);
    let mut file = File::options().write(true).create_new(true).open(path)?;
    let written = io::copy(&mut entry.by_ref().take(size), &mut file)?;
    let more = io::copy(&mut entry.take(1), &mut io::sink())?;
    if written != size || more != 0 {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "its size is not as declared",
        ));
    }
    if executable {
        use std::os::unix::fs::PermissionsExt;
        file.set_permissions(fs::Permissions::from_mode(0o755))?;
    }
    Ok(())
}

fn bad(archive: &Path, entry: &str, message: String) -> Error {
    Error::Archive {
        archive: archive.to_path_buf(),
        entry: entry.to_owned(),
        message,
    }
}
