//! Removes files from the cache that the lock does not name.

use std::collections::HashSet;
use std::fs;
use std::path::PathBuf;

use crate::cache::Cache;
use crate::error::{At, Result};
use crate::lock::Lock;

pub struct Garbage {
    pub path: PathBuf,
    pub bytes: u64,
}

/// Lists blobs that belong to no artifact, partial downloads, and folders of dead commands. The cache
/// must be open exclusively, so that no command is running and nothing listed is in use.
pub fn find(cache: &Cache, lock: &Lock) -> Result<Vec<Garbage>> {
    let wanted: HashSet<_> = lock
        .artifacts
        .iter()
        .map(|a| a.sha256.to_string())
        .collect();
    let mut garbage = Vec::new();
    for folder in ["blobs", "stamps", "partial", "work", "locks"] {
        let folder_path = cache.root().join(folder);
        for entry in fs::read_dir(&folder_path).at("read", &folder_path)? {
            let entry = entry.at("read", &folder_path)?;
            let kept = ["blobs", "stamps"].contains(&folder)
                && wanted.contains(&*entry.file_name().to_string_lossy());
            if !kept {
                let path = entry.path();
                garbage.push(Garbage {
                    bytes: bytes(&path)?,
                    path,
                });
            }
        }
    }
    garbage.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(garbage)
}

pub fn remove(garbage: &[Garbage]) -> Result<()> {
    for item in garbage {
        let is_folder = fs::symlink_metadata(&item.path)
            .at("read", &item.path)?
            .is_dir();
        let removed = if is_folder {
            fs::remove_dir_all(&item.path)
        } else {
            fs::remove_file(&item.path)
        };
        removed.at("remove", &item.path)?;
    }
    Ok(())
}

fn bytes(path: &PathBuf) -> Result<u64> {
    let data = fs::symlink_metadata(path).at("read", path)?;
    if !data.is_dir() {
        return Ok(data.len());
    }
    let entries = fs::read_dir(path).at("read", path)?;
    entries
        .map(|entry| bytes(&entry.at("read", path)?.path()))
        .sum()
}
