//! S3 settings from the usual environment variables and profile files. Secrets are never shown.

use std::collections::HashMap;
use std::env;
use std::fmt;
use std::fs;
use std::path::PathBuf;

use crate::error::{Error, Result};

#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    pub key_id: String,
    pub secret: String,
    pub session: Option<String>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials(not shown)")
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    pub credentials: Credentials,
    pub region: String,
    /// None: AWS itself.
    pub endpoint: Option<String>,
}

type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

impl Settings {
    pub fn from_environment() -> Result<Self> {
        let variable = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
        let home = env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
        let file = |variable: &str, name: &str| {
            let path = env::var_os(variable).map(PathBuf::from);
            fs::read_to_string(path.unwrap_or_else(|| home.join(".aws").join(name)))
                .unwrap_or_default()
        };
        let secrets = file("AWS_SHARED_CREDENTIALS_FILE", "credentials");
        Self::from(&variable, &secrets, &file("AWS_CONFIG_FILE", "config"))
    }

    /// Variables take precedence over the profile's entries in the two files.
    fn from(variable: Lookup, secrets: &str, config: &str) -> Result<Self> {
        let profile = variable("AWS_PROFILE").unwrap_or_else(|| "default".into());
        let secrets = section(secrets, &profile);
        let headings = [format!("profile {profile}"), profile.clone()];
        let config: HashMap<_, _> = headings
            .iter()
            .flat_map(|heading| section(config, heading))
            .collect();
        let entry = |name: &str| secrets.get(name).or_else(|| config.get(name)).cloned();
        let either = |name: &str| {
            let upper = name.to_ascii_uppercase();
            variable(&upper).or_else(|| entry(name))
        };
        // A key and its secret must come from the same source.
        let from_variables = variable("AWS_ACCESS_KEY_ID").zip(variable("AWS_SECRET_ACCESS_KEY"));
        let (key_id, secret, session) = match from_variables {
            Some((key_id, secret)) => (key_id, secret, variable("AWS_SESSION_TOKEN")),
            None => {
                let pair = entry("aws_access_key_id").zip(entry("aws_secret_access_key"));
                let (key_id, secret) = pair.ok_or_else(|| missing(&profile))?;
                (key_id, secret, entry("aws_session_token"))
            }
        };
        let region = variable("AWS_REGION")
            .or_else(|| variable("AWS_DEFAULT_REGION"))
            .or_else(|| entry("region"))
            .unwrap_or_else(|| "us-east-1".into());
        let endpoint = variable("AWS_ENDPOINT_URL_S3")
            .or_else(|| variable("AWS_ENDPOINT_URL"))
            .or_else(|| either("endpoint_url"));
        let credentials = Credentials {
            key_id,
            secret,
            session,
        };
        Ok(Self {
            credentials,
            region,
            endpoint,
        })
    }
}

fn missing(profile: &str) -> Error {
    Error::Refused(format!(
        "no S3 credentials; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or put them under \
        [{profile}] in ~/.aws/credentials (AWS_PROFILE selects another profile)"
    ))
}

fn section(text: &str, heading: &str) -> HashMap<String, String> {
    let mut entries = HashMap::new();
    let mut inside = false;
    for line in text.lines().map(str::trim) {
        if let Some(name) = line
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
        {
            inside = name.trim() == heading;
        } else if let Some((key, value)) = line.split_once('=').filter(|_| inside) {
            entries.insert(key.trim().to_ascii_lowercase(), value.trim().to_owned());
        }
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "[default]\naws_access_key_id = A\naws_secret_access_key = S\n\
                        [other]\naws_access_key_id=B\naws_secret_access_key=T\n";
    const CONFIG: &str = "[default]\nregion = eu-1\n[profile other]\nendpoint_url = http://x\n";

    fn settings(variables: &[(&str, &str)]) -> Result<Settings> {
        let lookup = |name: &str| {
            variables
                .iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| (*value).to_owned())
        };
        Settings::from(&lookup, FILE, CONFIG)
    }

    #[test]
    fn profiles_and_variables() {
        let plain = settings(&[]).unwrap();
        assert_eq!(
            (&plain.credentials.key_id[..], &plain.region[..]),
            ("A", "eu-1")
        );
        let other = settings(&[("AWS_PROFILE", "other")]).unwrap();
        assert_eq!(other.credentials.secret, "T");
        assert_eq!(other.endpoint.as_deref(), Some("http://x"));
        let set = [("AWS_ACCESS_KEY_ID", "C"), ("AWS_SECRET_ACCESS_KEY", "U")];
        assert_eq!(settings(&set).unwrap().credentials.key_id, "C");
    }

    #[test]
    fn a_missing_profile_is_an_error() {
        let error = settings(&[("AWS_PROFILE", "none")])
            .unwrap_err()
            .to_string();
        assert!(error.contains("[none]"), "{error}");
    }

    #[test]
    fn secrets_are_not_shown() {
        let shown = format!("{:?}", settings(&[]).unwrap());
        assert!(
            !shown.contains("\"S\"") && shown.contains("not shown"),
            "{shown}"
        );
    }
}
