//! Rehashes every cached artifact; with `deep`, also rebuilds the recipes.

use std::fs;

use serde::Serialize;

use crate::context::Context;
use crate::digest::Digest;
use crate::error::{At, Error, Result};
use crate::lock::{Artifact, Source};
use crate::recipe;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "status", rename_all = "lowercase")]
pub enum Finding {
    Good,
    /// Rebuilt in another folder with the same bytes.
    Rebuilt,
    Missing,
    /// Removed from the cache, so that the next fetch replaces it.
    Damaged {
        sha256: Digest,
    },
    /// The recipe's result differs from the lock.
    Different {
        sha256: Digest,
    },
}

impl Finding {
    pub fn is_good(&self) -> bool {
        matches!(self, Self::Good | Self::Rebuilt)
    }
}

pub fn verify(context: &Context, artifact: &Artifact, deep: bool) -> Result<Finding> {
    let blob = context.cache.blob(artifact.sha256);
    if !blob.exists() {
        return Ok(Finding::Missing);
    }
    let bar = context.progress.steps(&artifact.name);
    bar.set_message("reading");
    let (sha256, size) = Digest::of_file(&blob, &context.cancel)?;
    bar.finish_and_clear();
    if artifact.must_be(sha256, size).is_err() {
        let _guard = context.cache.guard(&artifact.sha256.to_string())?;
        fs::remove_file(&blob).at("remove", &blob)?;
        return Ok(Finding::Damaged { sha256 });
    }
    if !deep || !matches!(artifact.source, Source::Recipe { .. }) {
        return Ok(Finding::Good);
    }
    let built = recipe::run(context, artifact, &recipe::Changes::default())?;
    Ok(match artifact.must_be(built.digest, built.size) {
        Ok(()) => Finding::Rebuilt,
        Err(Error::Size { .. } | Error::Digest { .. }) => Finding::Different {
            sha256: built.digest,
        },
        Err(error) => return Err(error),
    })
}
