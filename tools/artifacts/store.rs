//! Places to upload artifacts to. A key with other content is never overwritten.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use reqwest::blocking::{Body, RequestBuilder, Response};
use reqwest::header::{AUTHORIZATION, CONTENT_LENGTH, IF_NONE_MATCH};

use crate::digest::{Digest, Hasher, BUFFER_BYTES};
use crate::error::{At, Error, Result};
use crate::http::{send, shown, without_credentials, Http};
use crate::publish::partial_in;
use crate::s3::{Action, Bucket};

pub enum Store {
    Folder(PathBuf),
    /// Plain PUT, as accepted by WebDAV and artifact servers.
    Web {
        base: String,
        authorization: Option<String>,
    },
    S3(Bucket),
}

/// Uploads may be slow, but this long per 64 KiB means a dead connection.
const SECONDS_PER_BLOCK: u64 = 2;
const BLOCK_BYTES: u64 = 64 << 10;

impl Store {
    pub fn parse(to: &str) -> Result<Self> {
        if to.starts_with("s3://") {
            return Bucket::open(to).map(Self::S3);
        }
        if let Some(path) = to.strip_prefix("file://") {
            return Ok(Self::Folder(path.into()));
        }
        if to.starts_with("http://") || to.starts_with("https://") {
            let base = to.trim_end_matches('/').to_owned();
            let authorization = std::env::var("HEAD_TO_HEAD_UPLOAD_AUTHORIZATION").ok();
            return Ok(Self::Web {
                base,
                authorization,
            });
        }
        Err(Error::Refused(format!(
            "`{}` is not a store: expected s3://bucket/prefix, file:///path or https://...",
            shown(to)
        )))
    }

    /// Where anybody can fetch the key afterwards.
    pub fn url(&self, key: &str) -> Result<String> {
        match self {
            Self::Folder(folder) => {
                let folder = fs::canonicalize(folder).at("find", folder)?;
                Ok(format!("file://{}", folder.join(key).display()))
            }
            Self::Web { base, .. } => Ok(format!("{}/{key}", without_credentials(base))),
            Self::S3(bucket) => bucket.public_url(key).map(|url| without_credentials(&url)),
        }
    }

    /// The digest of the key's current content, read back in full.
    pub fn digest(&self, http: &Http, key: &str) -> Result<Option<Digest>> {
        let mut hasher = Hasher::default();
        match self {
            Self::Folder(folder) => {
                let path = folder.join(key);
                let mut file = match File::open(&path) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                    file => file.at("open", &path)?,
                };
                io::copy(&mut file, &mut hasher).at("read", &path)?;
            }
            Self::Web { .. } | Self::S3(_) => {
                let url = self.signed_url(key, Action::Get)?;
                let mut response = send(self.authorized(http.client.get(&url)), &url)?;
                match response.status().as_u16() {
                    200 => hash_body(&mut response, &mut hasher, &url)?,
                    404 => return Ok(None),
                    // S3's answer for a missing key to somebody who may not list the bucket. If the
                    // key exists after all, it is not overwritten: `put` says so.
                    403 if matches!(self, Self::S3(_)) => return Ok(None),
                    status => {
                        return Err(Error::Status {
                            url: shown(&url),
                            status,
                        })
                    }
                }
            }
        }
        Ok(Some(hasher.finish()))
    }

    /// Writes a new key; fails if it exists by now.
    pub fn put(&self, http: &Http, key: &str, file: &Path) -> Result<()> {
        let Self::Folder(folder) = self else {
            return self.send_file(http, key, file);
        };
        fs::create_dir_all(folder).at("create", folder)?;
        let path = folder.join(key);
        let mut partial = partial_in(folder).at("create a file in", folder)?;
        let mut from = File::open(file).at("open", file)?;
        io::copy(&mut from, &mut partial).at("copy to", &path)?;
        let read_only = fs::Permissions::from_mode(0o444);
        partial
            .as_file()
            .set_permissions(read_only)
            .at("protect", &path)?;
        // Unlike a rename, this does not replace an existing file.
        let placed = partial.persist_noclobber(&path);
        placed.map_err(|failed| failed.error).at("create", &path)?;
        Ok(())
    }

    fn send_file(&self, http: &Http, key: &str, file: &Path) -> Result<()> {
        let url = self.signed_url(key, Action::Put)?;
        let size = fs::metadata(file).at("read", file)?.len();
        let seconds = 60 + size.div_ceil(BLOCK_BYTES) * SECONDS_PER_BLOCK;
        let body = Body::sized(File::open(file).at("open", file)?, size);
        let request = http
            .client
            .put(&url)
            .header(CONTENT_LENGTH, size)
            .body(body);
        let request = request
            .header(IF_NONE_MATCH, "*")
            .timeout(Duration::from_secs(seconds));
        let response = send(self.authorized(request), &url)?;
        match response.status().as_u16() {
            200 | 201 | 204 => Ok(()),
            409 | 412 => Err(conflict(&shown(&url))),
            status => Err(Error::Status {
                url: shown(&url),
                status,
            }),
        }
    }

    fn signed_url(&self, key: &str, action: Action) -> Result<String> {
        match self {
            Self::S3(bucket) => bucket.signed_url(key, action),
            Self::Web { base, .. } => Ok(format!("{base}/{key}")),
            Self::Folder(_) => self.url(key),
        }
    }

    fn authorized(&self, request: RequestBuilder) -> RequestBuilder {
        match self {
            Self::Web {
                authorization: Some(value),
                ..
            } => request.header(AUTHORIZATION, value),
            _ => request,
        }
    }
}

pub fn conflict(place: &str) -> Error {
    Error::Refused(format!(
        "{place} already exists with other content and was left alone; upload under another \
        prefix, or give the artifact a new version"
    ))
}

fn hash_body(response: &mut Response, hasher: &mut Hasher, url: &str) -> Result<()> {
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        let count = response
            .read(&mut buffer)
            .map_err(|error| Error::Transfer {
                url: shown(url),
                message: format!("broke off: {error}"),
            })?;
        if count == 0 {
            return Ok(());
        }
        hasher.update(&buffer[..count]);
    }
}
