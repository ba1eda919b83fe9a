//! The sha256 of large files: computed once, then cached with whatever would reveal a change.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

const BUFFER_BYTES: usize = 1 << 20;
/// A file may change again within the resolution of its timestamps; files this young are not
/// cached.
const SETTLED_NS: i64 = 2_000_000_000;

/// File metadata. The change time moves with every write, and no program can set it back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Stamp {
    device: u64,
    inode: u64,
    bytes: u64,
    modified_ns: i64,
    changed_ns: i64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Known {
    #[serde(flatten)]
    stamp: Stamp,
    sha256: String,
}

/// Digests by path.
pub(crate) struct Digests {
    place: Option<PathBuf>,
    known: BTreeMap<PathBuf, Known>,
}

impl Digests {
    /// Those in the user's cache folder; none if there is no such folder.
    pub fn of_user() -> Self {
        let folder = std::env::var_os("XDG_CACHE_HOME")
            .map(PathBuf::from)
            .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")));
        Self::at(folder.map(|folder| folder.join("head-to-head/library-digests.json")))
    }

    /// Those in a file; without one, nothing is cached.
    pub fn at(place: Option<PathBuf>) -> Self {
        let text = place
            .as_deref()
            .and_then(|place| fs::read_to_string(place).ok());
        // An unreadable file counts as missing: everything is hashed again.
        let known = text.and_then(|text| serde_json::from_str(&text).ok());
        Self {
            place,
            known: known.unwrap_or_default(),
        }
    }

    /// The sha256 of each file, in order. New files are hashed in parallel.
    pub fn of(&mut self, files: &[PathBuf]) -> Vec<io::Result<String>> {
        let digests: Vec<_> = std::thread::scope(|scope| {
            let known = &self.known;
            let jobs: Vec<_> = files
                .iter()
                .map(|file| scope.spawn(move || digest(file, known.get(file))))
                .collect();
            let joined = jobs.into_iter().map(|job| job.join());
            joined
                .map(|digest| digest.expect("hashing does not panic"))
                .collect()
        });
        let mut learnt = false;
        for (file, found) in files.iter().zip(&digests) {
            if let Ok(Found::Hashed(known)) = found {
                if settled(&known.stamp) {
                    self.known.insert(file.clone(), known.clone());
                    learnt = true;
                }
            }
        }
        if learnt {
            // Costs the next start at most a second.
            let _ = self.store();
        }
        digests
            .into_iter()
            .map(|found| found.map(Found::sha256))
            .collect()
    }

    /// Atomic: another process reads the old file or the new one.
    fn store(&self) -> io::Result<()> {
        let Some(place) = &self.place else {
            return Ok(());
        };
        let folder = place.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder)?;
        // Containers that share the folder share process ids too.
        let mut partial = tempfile::NamedTempFile::new_in(folder)?;
        partial.write_all(serde_json::to_string_pretty(&self.known)?.as_bytes())?;
        partial.persist(place)?;
        Ok(())
    }
}

enum Found {
    Remembered(String),
    Hashed(Known),
}

impl Found {
    fn sha256(self) -> String {
        match self {
            Found::Remembered(sha256) => sha256,
            Found::Hashed(known) => known.sha256,
        }
    }
}

fn digest(path: &Path, known: Option<&Known>) -> io::Result<Found> {
    let mut file = File::open(path)?;
    let stamp = stamp(&file)?;
    if let Some(known) = known.filter(|known| known.stamp == stamp) {
        return Ok(Found::Remembered(known.sha256.clone()));
    }
    let mut state = Sha256::new();
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        match file.read(&mut buffer)? {
            0 => break,
            count => state.update(&buffer[..count]),
        }
    }
    let sha256 = format!("{:x}", state.finalize());
    Ok(Found::Hashed(Known { stamp, sha256 }))
}

fn stamp(file: &File) -> io::Result<Stamp> {
    let about = file.metadata()?;
    let nanoseconds = |seconds: i64, rest: i64| seconds * 1_000_000_000 + rest;
    Ok(Stamp {
        device: about.dev(),
        inode: about.ino(),
        bytes: about.size(),
        modified_ns: nanoseconds(about.mtime(), about.mtime_nsec()),
        changed_ns: nanoseconds(about.ctime(), about.ctime_nsec()),
    })
}

fn settled(stamp: &Stamp) -> bool {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.is_ok_and(|now| now.as_nanos() as i64 - stamp.changed_ns > SETTLED_NS)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELLO: &str = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";

    #[test]
    fn a_file_that_did_not_change_is_not_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let (file, place) = (folder.path().join("a.so"), folder.path().join("d.json"));
        fs::write(&file, "hello").unwrap();
        let mut digests = Digests::at(Some(place.clone()));
        let one =
            |digests: &mut Digests| digests.of(std::slice::from_ref(&file)).remove(0).unwrap();
        assert_eq!(one(&mut digests), HELLO);
        assert!(!place.exists(), "too young to be cached");
        let planted = Known {
            stamp: stamp(&File::open(&file).unwrap()).unwrap(),
            sha256: "remembered".to_owned(),
        };
        digests.known.insert(file.clone(), planted);
        digests.store().unwrap();
        assert_eq!(one(&mut Digests::at(Some(place.clone()))), "remembered");
        fs::write(&file, "hellO").unwrap();
        fs::write(&file, "hello").unwrap();
        assert_eq!(one(&mut Digests::at(Some(place.clone()))), HELLO);
        fs::write(&place, "{ damaged").unwrap();
        assert_eq!(one(&mut Digests::at(Some(place))), HELLO);
    }

    #[test]
    fn a_file_that_cannot_be_read_is_an_error_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.so");
        fs::write(&file, "hello").unwrap();
        let digests = Digests::at(None).of(&[folder.path().join("b.so"), file]);
        assert!(digests[0].is_err());
        assert_eq!(digests[1].as_deref().unwrap(), HELLO);
    }
}
