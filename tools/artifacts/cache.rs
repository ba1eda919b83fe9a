//! Verified files, stored by sha256 in the user's cache folder and shared by concurrent runs.
//!
//! ```text
//! blobs/<sha256>      complete and verified, read-only
//! partial/<sha256>    a download to be resumed; never trusted
//! locks/<sha256>      held while that blob is being created
//! work/<pid>-<n>/     private folders of running commands
//! in-use              held shared by every command, exclusively by gc
//! ```

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::cancel::Cancel;
use crate::digest::Digest;
use crate::error::{At, Error, Result};
use crate::lock::Artifact;

pub struct Cache {
    root: PathBuf,
    _in_use: File,
}

/// Who else may use the cache at the same time.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Access {
    Shared,
    Exclusive,
}

impl Cache {
    pub fn open(root: &Path, access: Access) -> Result<Self> {
        for folder in ["blobs", "partial", "locks", "work"] {
            let path = root.join(folder);
            fs::create_dir_all(&path).at("create the cache folder", &path)?;
        }
        // Child processes run in other folders.
        let root = root.canonicalize().at("find", root)?;
        let path = root.join("in-use");
        let in_use = open_lock(&path)?;
        match access {
            Access::Shared => in_use.lock_shared().at("lock", &path)?,
            Access::Exclusive => in_use.lock().at("lock", &path)?,
        }
        Ok(Self {
            root,
            _in_use: in_use,
        })
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn blob(&self, digest: Digest) -> PathBuf {
        self.root.join("blobs").join(digest.to_string())
    }

    pub fn partial(&self, digest: Digest) -> PathBuf {
        self.root.join("partial").join(digest.to_string())
    }

    /// A blob was verified when it was added, so checking its size is enough; `verify` rehashes it.
    pub fn has(&self, artifact: &Artifact) -> bool {
        fs::metadata(self.blob(artifact.sha256)).is_ok_and(|file| file.len() == artifact.size)
    }

    /// Waits until no other run is creating this blob.
    pub fn guard(&self, name: &str) -> Result<File> {
        let path = self.root.join("locks").join(name);
        let file = open_lock(&path)?;
        file.lock().at("lock", &path)?;
        Ok(file)
    }

    /// Adds a local file if it matches the lock; otherwise removes it.
    pub fn admit(&self, file: &Path, artifact: &Artifact, cancel: &Cancel) -> Result<()> {
        let (digest, size) = Digest::of_file(file, cancel)?;
        let checked = artifact.must_be(digest, size);
        if checked.is_err() {
            fs::remove_file(file).at("remove", file)?;
        }
        checked?;
        self.keep(file, digest)
    }

    /// Adds a local file that was hashed while it was written. It is not flushed to disk: after a
    /// crash it is missing or short, and is fetched again; `verify` reads everything.
    pub fn keep(&self, file: &Path, digest: Digest) -> Result<()> {
        let mut permissions = fs::metadata(file).at("read", file)?.permissions();
        permissions.set_readonly(true);
        fs::set_permissions(file, permissions).at("protect", file)?;
        let blob = self.blob(digest);
        fs::rename(file, &blob).at("store", &blob)
    }

    /// A private folder of this command, removed on drop.
    pub fn scratch(&self) -> Result<Scratch> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = self
            .root
            .join("work")
            .join(format!("{}-{number}", std::process::id()));
        // Left over from a dead process that had our id.
        if path.exists() {
            fs::remove_dir_all(&path).at("remove", &path)?;
        }
        fs::create_dir(&path).at("create", &path)?;
        Ok(Scratch(path))
    }
}

impl Artifact {
    pub fn must_be(&self, digest: Digest, size: u64) -> Result<()> {
        if size != self.size {
            let what = self.name.clone();
            return Err(Error::Size {
                what,
                expected: self.size,
                actual: size,
            });
        }
        digest.must_be(self.sha256, &self.name)
    }
}

pub struct Scratch(PathBuf);

impl Scratch {
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Whatever cannot be removed now, gc removes later.
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn open_lock(path: &Path) -> Result<File> {
    File::options()
        .create(true)
        .write(true)
        .truncate(false)
        .open(path)
        .at("open", path)
}

/// `$HEAD_TO_HEAD_CACHE/artifacts`, else under the user's cache folder: where bazelw keeps its own.
pub fn default_root() -> Result<PathBuf> {
    let set = |name| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let ours = |base: PathBuf| base.join("head-to-head");
    set("HEAD_TO_HEAD_CACHE")
        .or_else(|| set("XDG_CACHE_HOME").map(ours))
        .or_else(|| set("HOME").map(|home| ours(home.join(".cache"))))
        .map(|root| root.join("artifacts"))
        .ok_or_else(|| {
            Error::Refused("no HOME for the cache; set HEAD_TO_HEAD_CACHE to a folder".into())
        })
}
