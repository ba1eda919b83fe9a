//! A sha256, and streaming hashes.

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::str::FromStr;
use std::sync::mpsc::{channel, sync_channel, Receiver, SyncSender};
use std::thread::{self, JoinHandle};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::cancel::Cancel;
use crate::error::{At, Error, Result};

pub const BUFFER_BYTES: usize = 1 << 19;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest([u8; 32]);

impl Digest {
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Hashes a file; also returns its length.
    pub fn of_file(path: &Path, cancel: &Cancel) -> Result<(Self, u64)> {
        let mut file = File::open(path).at("open", path)?;
        let mut hasher = Hasher::default();
        let mut buffer = vec![0; BUFFER_BYTES];
        loop {
            cancel.check()?;
            match file.read(&mut buffer).at("read", path)? {
                0 => return Ok((hasher.finish(), hasher.bytes())),
                count => hasher.update(&buffer[..count]),
            }
        }
    }

    pub fn must_be(self, expected: Self, what: &str) -> Result<()> {
        if self == expected {
            return Ok(());
        }
        Err(Error::Digest {
            what: what.to_owned(),
            expected: expected.to_string(),
            actual: self.to_string(),
        })
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Digest {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("`{text}` is not a sha256: expected 64 lower-case hexadecimal digits");
        let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if text.len() != 64 || !text.bytes().all(is_hex) {
            return Err(wrong());
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
            let pair = std::str::from_utf8(pair).map_err(|_| wrong())?;
            *byte = u8::from_str_radix(pair, 16).map_err(|_| wrong())?;
        }
        Ok(Self(bytes))
    }
}

impl TryFrom<String> for Digest {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.to_string()
    }
}

/// A sha256 in progress, with the number of bytes so far.
#[derive(Clone, Default)]
pub struct Hasher {
    state: Sha256,
    bytes: u64,
}

impl Hasher {
    pub fn update(&mut self, bytes: &[u8]) {
        self.state.update(bytes);
        self.bytes += bytes.len() as u64;
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn finish(&self) -> Digest {
        Digest(self.state.clone().finalize().into())
    }
}

impl Write for Hasher {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Hashes on another thread, so that a download waits only for the network.
pub struct BackgroundHasher {
    full: SyncSender<(Vec<u8>, usize)>,
    empty: Receiver<Vec<u8>>,
    thread: JoinHandle<Digest>,
}

/// Buffers in flight; more would only use memory.
const QUEUE: usize = 16;

impl BackgroundHasher {
    pub fn start() -> Self {
        let (full, received) = sync_channel::<(Vec<u8>, usize)>(QUEUE);
        let (done, empty) = channel();
        let thread = thread::spawn(move || {
            let mut hasher = Hasher::default();
            for (buffer, count) in received {
                hasher.update(&buffer[..count]);
                // The other side may not need any more.
                let _ = done.send(buffer);
            }
            hasher.finish()
        });
        Self {
            full,
            empty,
            thread,
        }
    }

    /// A buffer to fill.
    pub fn buffer(&self) -> Vec<u8> {
        let used = self.empty.try_recv();
        used.unwrap_or_else(|_| vec![0; BUFFER_BYTES])
    }

    /// Hashes the first `count` bytes.
    pub fn update(&self, buffer: Vec<u8>, count: usize) {
        // The receiver lives until the sender is dropped, in `finish`.
        let _ = self.full.send((buffer, count));
    }

    pub fn finish(self) -> Digest {
        drop(self.full);
        match self.thread.join() {
            Ok(digest) => digest,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn background_is_the_same() {
        let background = BackgroundHasher::start();
        for part in [&b"a"[..], b"", b"bc"] {
            let mut buffer = background.buffer();
            buffer[..part.len()].copy_from_slice(part);
            background.update(buffer, part.len());
        }
        assert_eq!(background.finish(), Digest::of(b"abc"));
    }

    #[test]
    fn hex_goes_both_ways() {
        let digest = Digest::of(b"abc");
        let text = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(digest.to_string(), text);
        assert_eq!(text.parse(), Ok(digest));
    }

    #[test]
    fn refuses_other_text() {
        for text in [
            "",
            "ba78",
            &"g".repeat(64),
            &"A".repeat(64),
            &"é".repeat(32),
        ] {
            assert!(text.parse::<Digest>().is_err(), "{text}");
        }
    }
}
