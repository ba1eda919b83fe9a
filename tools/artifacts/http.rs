//! The HTTP client: retries, time-outs, and errors that name the URL without its secrets.

use std::time::Duration;

use reqwest::blocking::{Client, RequestBuilder, Response};
use reqwest::redirect;

use crate::cancel::Cancel;
use crate::error::{Error, Result};

/// When to try again and when to give up.
#[derive(Clone, Debug)]
pub struct Policy {
    pub attempts: u32,
    /// Wait before the second attempt; doubled for each later one.
    pub backoff: Duration,
    pub longest_backoff: Duration,
    /// How long a transfer may stay below `stall_bytes`.
    pub stall: Duration,
    pub stall_bytes: u64,
    pub redirects: usize,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            attempts: 5,
            backoff: Duration::from_millis(500),
            longest_backoff: Duration::from_secs(30),
            stall: Duration::from_secs(30),
            stall_bytes: 16 << 10,
            redirects: 8,
        }
    }
}

pub struct Http {
    pub client: Client,
    pub policy: Policy,
    pub cancel: Cancel,
}

impl Http {
    pub fn new(policy: Policy, cancel: Cancel) -> Result<Self> {
        let client = Client::builder()
            .user_agent("head-to-head-artifacts")
            .redirect(redirect::Policy::limited(policy.redirects))
            .connect_timeout(policy.stall)
            .timeout(policy.stall) // of each read, in the blocking client
            .build()
            .map_err(|error| transfer("HTTP client", &error))?;
        Ok(Self {
            client,
            policy,
            cancel,
        })
    }
}

pub fn send(request: RequestBuilder, url: &str) -> Result<Response> {
    request.send().map_err(|error| transfer(url, &error))
}

/// A URL for people: without its query, where a signed one carries a credential, and without the
/// credentials in front of its host.
pub fn shown(url: &str) -> String {
    without_credentials(url.split(['?', '#']).next().unwrap_or(url))
}

/// The same address without a user name and password.
pub fn without_credentials(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        return url.to_owned();
    };
    let authority = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    match rest[..authority].rfind('@') {
        Some(at) => format!("{scheme}://{}", &rest[at + 1..]),
        None => url.to_owned(),
    }
}

fn transfer(url: &str, error: &reqwest::Error) -> Error {
    if error.is_redirect() {
        return Error::Redirects { url: shown(url) };
    }
    let mut message = if error.is_timeout() {
        "timed out"
    } else {
        "no answer"
    }
    .to_owned();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        message = format!("{message}: {inner}");
        cause = inner.source();
    }
    Error::Transfer {
        url: shown(url),
        message,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_not_shown() {
        for (url, expected) in [
            ("https://user:pass@host/a?b=c#d", "https://host/a"),
            ("https://token@host:8443", "https://host:8443"),
            ("http://a@b@host/x@y", "http://host/x@y"),
            ("https://host/x@y", "https://host/x@y"),
            ("https://host?user@x", "https://host"),
            ("folder/a@b", "folder/a@b"),
        ] {
            assert_eq!(shown(url), expected);
        }
    }
}
