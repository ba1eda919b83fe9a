//! Verified files, stored by sha256 in the user's cache folder and shared by concurrent runs.
//!
//! ```text
//! blobs/<sha256>      complete and verified, read-only
//! stamps/<sha256>     inode, size and times of the blob when it was last hashed
//! partial/<sha256>    a download to be resumed; never trusted
//! locks/<sha256>      held while that blob is being created
//! work/<random>/      private folders of running commands
//! in-use              held shared by every command, exclusively by gc
//! ```
//!
//! Nobody else may write here: what is in the cache is executed. Names are random because containers
//! that share a cache share process ids too; locks are flock's, which hold between containers, and
//! between nodes wherever the file system has locks at all.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::cancel::Cancel;
use crate::digest::Digest;
use crate::error::{At, Error, Result};
use crate::lock::Artifact;
use crate::publish::publish;

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
        for folder in ["blobs", "stamps", "partial", "locks", "work"] {
            let path = root.join(folder);
            let mut private = DirBuilder::new();
            let made = private.recursive(true).mode(0o700).create(&path);
            made.at("create the cache folder", &path)?;
            refuse_if_shared(&path)?;
        }
        refuse_if_shared(root)?;
        // Child processes run in other folders.
        let root = root.canonicalize().at("find", root)?;
        let path = root.join("in-use");
        let in_use = open_lock(&path)?;
        locked(
            &path,
            match access {
                Access::Shared => in_use.lock_shared(),
                Access::Exclusive => in_use.lock(),
            },
        )?;
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

    /// Whether the blob is there and has its digest. Only a file that has changed since it was last
    /// hashed is hashed again.
    pub fn has(&self, artifact: &Artifact) -> bool {
        let blob = self.blob(artifact.sha256);
        let Some((seen, size)) = seen(&blob) else {
            return false;
        };
        if size != artifact.size {
            return false;
        }
        let stamp = self.stamp(artifact.sha256);
        if fs::read_to_string(stamp).is_ok_and(|known| known == seen) {
            return true;
        }
        // What cannot be read is fetched again.
        let right = Digest::of_file(&blob, &Cancel::default())
            .is_ok_and(|(digest, size)| artifact.must_be(digest, size).is_ok());
        if right {
            self.note(artifact.sha256, &seen);
        }
        right
    }

    fn stamp(&self, digest: Digest) -> PathBuf {
        self.root.join("stamps").join(digest.to_string())
    }

    fn note(&self, digest: Digest, seen: &str) {
        let folder = self.root.join("stamps");
        // Without a stamp the blob is hashed again, which is not an error.
        let _ = publish(&folder, &self.stamp(digest), |file| {
            io::Write::write_all(file, seen.as_bytes())
        });
    }

    /// Waits until no other run is creating this blob.
    pub fn guard(&self, name: &str) -> Result<File> {
        let path = self.root.join("locks").join(name);
        let file = open_lock(&path)?;
        locked(&path, file.lock())?;
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
        fs::rename(file, &blob).at("store", &blob)?;
        if let Some((seen, _)) = seen(&blob) {
            self.note(digest, &seen);
        }
        Ok(())
    }

    /// A private folder of this command, removed on drop.
    pub fn scratch(&self) -> Result<Scratch> {
        let work = self.root.join("work");
        let folder = tempfile::Builder::new()
            .permissions(Permissions::from_mode(0o700))
            .tempdir_in(&work);
        Ok(Scratch(folder.at("create a folder in", &work)?))
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

/// Whatever cannot be removed when it is dropped, gc removes later.
pub struct Scratch(TempDir);

impl Scratch {
    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

/// What changes whenever a file's bytes do, and its size; nothing for what is not a plain file.
fn seen(path: &Path) -> Option<(String, u64)> {
    let data = fs::symlink_metadata(path)
        .ok()
        .filter(|data| data.is_file())?;
    let (inode, size) = (data.ino(), data.len());
    let changed = [
        data.mtime(),
        data.mtime_nsec(),
        data.ctime(),
        data.ctime_nsec(),
    ];
    Some((format!("{inode} {size} {changed:?}"), size))
}

/// What is in the cache is executed, so whoever can write there can execute.
fn refuse_if_shared(folder: &Path) -> Result<()> {
    let data = fs::metadata(folder).at("read", folder)?;
    let this = Path::new("/proc/self");
    let us = fs::metadata(this).at("read", this)?.uid();
    let whose = match data.uid() {
        owner if owner != us && owner != 0 => format!("belongs to user {owner}"),
        _ if data.mode() & 0o022 != 0 => "is writable by others".to_owned(),
        _ => return Ok(()),
    };
    Err(Error::Refused(format!(
        "the cache folder {} {whose}, who could plant programs there; run `chmod -R go-w` on it, or set \
        HEAD_TO_HEAD_CACHE to a folder of yours",
        folder.display()
    )))
}

fn locked(path: &Path, locked: io::Result<()>) -> Result<()> {
    match locked {
        Err(error) if error.kind() == io::ErrorKind::Unsupported => Err(Error::Refused(format!(
            "the file system of {} has no locks, so two runs would disturb each other; set \
            HEAD_TO_HEAD_CACHE to a folder on another",
            path.display()
        ))),
        locked => locked.at("lock", path),
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
