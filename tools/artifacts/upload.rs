//! Uploads an artifact to a store, reads it back, and records its URL in the lock.

use std::path::Path;

use crate::cache::Cache;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::lock::{Artifact, Lock};
use crate::store::{conflict, Store};

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Licence {
    /// Upload only what anybody may redistribute.
    Respected,
    /// The user has read the licence and decides.
    Accepted,
}

/// Returns the address. Uploading the same bytes again is not an error.
pub fn upload(
    context: &Context,
    artifact: &Artifact,
    store: &Store,
    licence: Licence,
) -> Result<String> {
    if !artifact.redistributable && licence == Licence::Respected {
        return Err(Error::Refused(format!(
            "{} is under {} and the lock does not mark it redistributable; if you may redistribute it, \
            use --accept-licence",
            artifact.name, artifact.licence
        )));
    }
    context.fetch(artifact)?;
    let (http, key) = (&context.http, artifact.key());
    match store.digest(http, &key)? {
        Some(digest) if digest == artifact.sha256 => {}
        Some(_) => return Err(conflict(&key)),
        None => {
            let blob = context.cache.blob(artifact.sha256);
            let put = store.put(http, &key, &blob);
            // Somebody may have uploaded the same bytes first.
            if put.is_err() && store.digest(http, &key)? != Some(artifact.sha256) {
                put?;
            }
        }
    }
    match store.digest(http, &key)? {
        Some(digest) => digest.must_be(artifact.sha256, &format!("{key}, read back"))?,
        None => {
            return Err(Error::Refused(format!(
                "{key}: was uploaded but cannot be found"
            )))
        }
    }
    let url = store.url(&key)?;
    change_lock(&context.cache, &context.lock_path, |lock| {
        let mut changed = lock.get(&artifact.name)?.clone();
        if changed.sha256 == artifact.sha256 && !changed.urls.contains(&url) {
            changed.urls.push(url.clone());
            changed.urls.sort();
            lock.put(changed);
        }
        Ok(())
    })?;
    Ok(url)
}

/// Reads the lock, changes it and writes it, one run at a time.
pub fn change_lock(
    cache: &Cache,
    path: &Path,
    change: impl FnOnce(&mut Lock) -> Result<()>,
) -> Result<()> {
    let _guard = cache.guard("artifacts.lock.json")?;
    let mut lock = Lock::read(path)?;
    let before = lock.clone();
    change(&mut lock)?;
    if lock != before {
        // Check that the new text parses: a mistake here must not cost the lock.
        Lock::parse(&lock.text(), path)?;
        lock.write(path)?;
    }
    Ok(())
}
