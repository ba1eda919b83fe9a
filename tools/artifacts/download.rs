//! Downloads over HTTP: resumed, bounded, retried, and hashed while they arrive.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use reqwest::blocking::Response;
use reqwest::header::{CONTENT_RANGE, RANGE, RETRY_AFTER};
use reqwest::StatusCode;

use crate::digest::{BackgroundHasher, Digest};
use crate::error::{At, Error, Result};
use crate::http::{send, shown, Http};

/// One file to download. Afterwards `partial` is complete and verified, or holds a clean beginning
/// that a later download resumes, or is gone.
pub struct Download<'a> {
    pub url: &'a str,
    pub partial: &'a Path,
    pub size: u64,
    pub digest: Digest,
    pub bar: &'a ProgressBar,
}

enum Attempt {
    Done,
    /// Worth another try, after at least this long.
    Again(Error, Option<Duration>),
}

impl Download<'_> {
    pub fn run(&self, http: &Http) -> Result<()> {
        let longest = http.policy.longest_backoff;
        let mut wait = http.policy.backoff;
        for attempt in 1.. {
            match self.attempt(http)? {
                Attempt::Done => break,
                Attempt::Again(error, _) if attempt >= http.policy.attempts => return Err(error),
                Attempt::Again(_, at_least) => {
                    let asked = at_least.unwrap_or_default();
                    http.cancel.sleep(wait.max(asked).min(longest))?;
                    wait = (wait * 2).min(longest);
                }
            }
        }
        Ok(())
    }

    fn attempt(&self, http: &Http) -> Result<Attempt> {
        http.cancel.check()?;
        let (mut hasher, mut start) = self.resume(http)?;
        let mut request = http.client.get(self.url);
        if start > 0 {
            request = request.header(RANGE, format!("bytes={start}-"));
        }
        let mut response = match send(request, self.url) {
            Ok(response) => response,
            Err(error @ Error::Transfer { .. }) => return Ok(Attempt::Again(error, None)),
            Err(error) => return Err(error),
        };
        match response.status() {
            StatusCode::PARTIAL_CONTENT if starts_at(&response, start) => {}
            StatusCode::OK => (hasher, start) = (BackgroundHasher::start(), 0),
            StatusCode::RANGE_NOT_SATISFIABLE | StatusCode::PARTIAL_CONTENT => {
                self.discard()?;
                return Ok(Attempt::Again(self.stopped("cannot be resumed"), None));
            }
            status => return self.refused(&response, status),
        }
        if let Some(length) = response.content_length() {
            self.must_fit(start + length)
                .or_else(|error| self.discard().and(Err(error)))?;
        }
        match self.receive(http, &mut response, &hasher, start) {
            Err(error @ Error::Transfer { .. }) => return Ok(Attempt::Again(error, None)),
            Err(Error::Interrupted) => return Err(Error::Interrupted),
            received => received.or_else(|error| self.discard().and(Err(error)))?,
        }
        match hasher.finish().must_be(self.digest, &shown(self.url)) {
            Ok(()) => Ok(Attempt::Done),
            Err(error) => {
                self.discard()?;
                // The beginning may belong to another file: try once from the start.
                if start > 0 {
                    return Ok(Attempt::Again(error, None));
                }
                Err(error)
            }
        }
    }

    /// Hashes what an earlier download left and returns its length.
    fn resume(&self, http: &Http) -> Result<(BackgroundHasher, u64)> {
        let hasher = BackgroundHasher::start();
        let mut file = match File::open(self.partial) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((hasher, 0)),
            file => file.at("open", self.partial)?,
        };
        let data = file.metadata().at("read", self.partial)?;
        // A full file failed its check or was never checked: download it again.
        if data.len() >= self.size {
            self.discard()?;
        }
        if !data.is_file() || data.len() >= self.size {
            return Ok((hasher, 0));
        }
        let mut bytes = 0;
        loop {
            http.cancel.check()?;
            let mut buffer = hasher.buffer();
            let count = file.read(&mut buffer).at("read", self.partial)?;
            if count == 0 {
                return Ok((hasher, bytes));
            }
            hasher.update(buffer, count);
            bytes += count as u64;
        }
    }

    fn receive(
        &self,
        http: &Http,
        response: &mut Response,
        hasher: &BackgroundHasher,
        start: u64,
    ) -> Result<()> {
        let mut options = File::options();
        options.create(true).write(true);
        options.append(start > 0).truncate(start == 0);
        let mut file = options.open(self.partial).at("open", self.partial)?;
        let mut bytes = start;
        let (mut window, mut window_bytes) = (Instant::now(), 0);
        // One read past the end shows whether the body ends there.
        loop {
            http.cancel.check()?;
            let mut buffer = hasher.buffer();
            let count = match response.read(&mut buffer) {
                Ok(0) | Err(_) if bytes == self.size => return Ok(()),
                Ok(0) => {
                    let message = format!("ended after {bytes} of {} bytes", self.size);
                    return Err(self.stopped(&message));
                }
                Ok(count) => count,
                Err(error) => return Err(self.stopped(&format!("broke off: {error}"))),
            };
            bytes += count as u64;
            self.must_fit(bytes)?;
            file.write_all(&buffer[..count]).at("write", self.partial)?;
            hasher.update(buffer, count);
            self.bar.set_position(bytes);
            window_bytes += count as u64;
            if window.elapsed() > http.policy.stall {
                if window_bytes < http.policy.stall_bytes {
                    let seconds = window.elapsed().as_secs_f32();
                    let message = format!("stalled: {window_bytes} bytes in {seconds:.1} s");
                    return Err(self.stopped(&message));
                }
                (window, window_bytes) = (Instant::now(), 0);
            }
        }
    }

    fn must_fit(&self, bytes: u64) -> Result<()> {
        if bytes <= self.size {
            return Ok(());
        }
        Err(Error::Size {
            what: shown(self.url),
            expected: self.size,
            actual: bytes,
        })
    }

    fn stopped(&self, message: &str) -> Error {
        Error::Transfer {
            url: shown(self.url),
            message: message.to_owned(),
        }
    }

    fn refused(&self, response: &Response, status: StatusCode) -> Result<Attempt> {
        let error = Error::Status {
            url: shown(self.url),
            status: status.as_u16(),
        };
        let passing = matches!(status.as_u16(), 408 | 425 | 429) || status.is_server_error();
        if !passing {
            return Err(error);
        }
        let seconds = header(response, RETRY_AFTER.as_str()).and_then(|text| text.parse().ok());
        Ok(Attempt::Again(error, seconds.map(Duration::from_secs)))
    }

    fn discard(&self) -> Result<()> {
        match fs::remove_file(self.partial) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed.at("remove", self.partial),
        }
    }
}

fn starts_at(response: &Response, offset: u64) -> bool {
    let range = header(response, CONTENT_RANGE.as_str());
    range.is_some_and(|range| range.starts_with(&format!("bytes {offset}-")))
}

fn header<'a>(response: &'a Response, name: &str) -> Option<&'a str> {
    response.headers().get(name)?.to_str().ok()
}
