//! An S3-compatible bucket: addresses and signatures.

use std::time::Duration;

use rusty_s3::{S3Action, UrlStyle};

use crate::credentials::Settings;
use crate::error::{Error, Result};
use crate::http::shown;

const SIGNATURE_LIFE: Duration = Duration::from_secs(3600);

/// What a signed address is good for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Action {
    Get,
    Put,
}

pub struct Bucket {
    bucket: rusty_s3::Bucket,
    credentials: rusty_s3::Credentials,
    prefix: String,
}

impl Bucket {
    /// Opens `s3://bucket/prefix` with the settings of the environment.
    pub fn open(to: &str) -> Result<Self> {
        Self::with(to, &Settings::from_environment()?)
    }

    pub fn with(to: &str, settings: &Settings) -> Result<Self> {
        let wrong = |why: String| Error::Refused(format!("`{to}`: {why}"));
        let path = to.strip_prefix("s3://").unwrap_or(to);
        let (name, prefix) = path.split_once('/').unwrap_or((path, ""));
        if name.is_empty() {
            return Err(wrong("expected s3://bucket/prefix".into()));
        }
        // Servers other than AWS rarely have a host name per bucket.
        let style = match settings.endpoint {
            Some(_) => UrlStyle::Path,
            None => UrlStyle::VirtualHost,
        };
        let aws = || format!("https://s3.{}.amazonaws.com", settings.region);
        let endpoint = settings.endpoint.clone().unwrap_or_else(aws);
        let endpoint = endpoint
            .parse()
            .map_err(|e| wrong(format!("endpoint {}: {e}", shown(&endpoint))))?;
        let region = settings.region.clone();
        let bucket = rusty_s3::Bucket::new(endpoint, style, name.to_owned(), region)
            .map_err(|error| wrong(error.to_string()))?;
        let ours = &settings.credentials;
        let credentials = match &ours.session {
            Some(session) => rusty_s3::Credentials::new_with_token(
                ours.key_id.clone(),
                ours.secret.clone(),
                session.clone(),
            ),
            None => rusty_s3::Credentials::new(ours.key_id.clone(), ours.secret.clone()),
        };
        Ok(Self {
            bucket,
            credentials,
            prefix: prefix.trim_matches('/').to_owned(),
        })
    }

    fn object(&self, key: &str) -> String {
        if self.prefix.is_empty() {
            return key.to_owned();
        }
        format!("{}/{key}", self.prefix)
    }

    pub fn public_url(&self, key: &str) -> Result<String> {
        let url = self.bucket.object_url(&self.object(key));
        url.map(String::from)
            .map_err(|error| Error::Refused(format!("{key}: {error}")))
    }

    pub fn signed_url(&self, key: &str, action: Action) -> Result<String> {
        let (object, credentials) = (self.object(key), Some(&self.credentials));
        Ok(String::from(match action {
            Action::Get => self
                .bucket
                .get_object(credentials, &object)
                .sign(SIGNATURE_LIFE),
            Action::Put => self
                .bucket
                .put_object(credentials, &object)
                .sign(SIGNATURE_LIFE),
        }))
    }
}

/// The signed form of a URL in a configured bucket; None for other URLs.
pub fn signed_address(url: &str, settings: &Settings) -> Option<String> {
    let (bucket, key) = match &settings.endpoint {
        Some(endpoint) => {
            let path = url.strip_prefix(endpoint.trim_end_matches('/'))?;
            path.strip_prefix('/')?.split_once('/')?
        }
        None => {
            let (host, key) = url.strip_prefix("https://")?.split_once('/')?;
            let aws = format!(".s3.{}.amazonaws.com", settings.region);
            (host.strip_suffix(&aws)?, key)
        }
    };
    let bucket = Bucket::with(&format!("s3://{bucket}"), settings).ok()?;
    bucket.signed_url(key, Action::Get).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::credentials::Credentials;

    fn settings(endpoint: Option<&str>) -> Settings {
        let credentials = Credentials {
            key_id: "id".into(),
            secret: "secret".into(),
            session: None,
        };
        Settings {
            credentials,
            region: "eu-1".into(),
            endpoint: endpoint.map(str::to_owned),
        }
    }

    fn bucket(endpoint: Option<&str>) -> Bucket {
        Bucket::with("s3://things/a/b/", &settings(endpoint)).unwrap()
    }

    #[test]
    fn only_own_addresses_are_signed() {
        let own = Some("http://127.0.0.1:9000");
        for endpoint in [None, own] {
            let url = bucket(endpoint).public_url("x.zip").unwrap();
            let signed = signed_address(&url, &settings(endpoint)).unwrap();
            assert!(signed.starts_with(&format!("{url}?")), "{signed}");
        }
        let elsewhere = "https://example.com/things/x.zip";
        assert_eq!(signed_address(elsewhere, &settings(own)), None);
        assert_eq!(signed_address(elsewhere, &settings(None)), None);
    }

    #[test]
    fn addresses() {
        let own = bucket(Some("http://127.0.0.1:9000"))
            .public_url("x.zip")
            .unwrap();
        assert_eq!(own, "http://127.0.0.1:9000/things/a/b/x.zip");
        let aws = bucket(None).public_url("x.zip").unwrap();
        assert_eq!(aws, "https://things.s3.eu-1.amazonaws.com/a/b/x.zip");
    }

    #[test]
    fn signatures_hide_the_secret() {
        let url = bucket(None).signed_url("x.zip", Action::Put).unwrap();
        assert!(
            url.contains("X-Amz-Signature=") && !url.contains("secret"),
            "{url}"
        );
    }
}
