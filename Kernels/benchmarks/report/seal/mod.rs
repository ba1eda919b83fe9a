//! A proof to pass on: results with raw samples, digests and card state in one file, signed with ed25519.
//!
//! The file is a line with the version, a line with the statement (JSON), a line with the signature of the two, and
//! then the parts that the statement lists by size and SHA-256: the results, gzipped, and the lock if it was given.
//! Nothing in it is used before the signature and every digest have been checked.

mod key;
mod summary;

pub use key::{parse_public_key, read_or_make_key};
pub use summary::{Card, Digest, Summary};

use crate::{packed_for, Collection, ReportingError};
use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use flate2::read::GzDecoder;
use key::{hex, unhex};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::path::Path;

const SEAL_VERSION: u32 = 1;
/// How every seal begins; the version follows.
const MAGIC: &str = "head-to-head seal ";
const RESULTS: &str = "results.json.gz";
const LOCK: &str = "artifacts.lock.json";

/// What is signed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Statement {
    pub public_key: String,
    /// What follows the signature, in order.
    pub parts: Vec<Part>,
    /// The files that were sealed, as they were.
    pub inputs: Vec<Digest>,
    /// The programs that measured, as they were when the results were sealed.
    pub programs: Vec<Digest>,
    pub summary: Summary,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    pub name: String,
    pub bytes: usize,
    pub sha256: String,
}

/// What goes into a seal besides the results.
#[derive(Debug, Default)]
pub struct Evidence {
    pub inputs: Vec<Digest>,
    pub programs: Vec<Digest>,
    /// The text of the artifact lock.
    pub lock: Option<Vec<u8>>,
}

/// An opened seal; its signature and digests are right.
#[derive(Debug)]
pub struct Sealed {
    pub statement: Statement,
    pub collection: Collection,
}

pub fn digest(name: &str, bytes: &[u8]) -> Digest {
    Digest {
        name: name.to_owned(),
        sha256: hex(&Sha256::digest(bytes)),
    }
}

/// The bytes of a seal.
pub fn seal(
    collection: &Collection,
    evidence: Evidence,
    key: &SigningKey,
) -> Result<Vec<u8>, ReportingError> {
    let text = collection.to_json()?;
    // Summarised as a reader will see it.
    let summary = Summary::of(&Collection::parse(&text, "the results", "results")?);
    let results = packed_for(Path::new(RESULTS), text.as_bytes())
        .map_err(|error| ReportingError::input(RESULTS, error))?;
    let mut contents = vec![(RESULTS, results)];
    if let Some(lock) = evidence.lock {
        check_lock(&lock, &summary).map_err(|problem| ReportingError::input(LOCK, problem))?;
        contents.push((LOCK, lock));
    }
    let part = |(name, bytes): &(&str, Vec<u8>)| Part {
        name: (*name).to_owned(),
        bytes: bytes.len(),
        sha256: hex(&Sha256::digest(bytes)),
    };
    let statement = Statement {
        public_key: hex(key.verifying_key().as_bytes()),
        parts: contents.iter().map(part).collect(),
        inputs: evidence.inputs,
        programs: evidence.programs,
        summary,
    };
    let statement = serde_json::to_string(&statement)
        .map_err(|error| ReportingError::input("the statement", error))?;
    let mut bytes = format!("{MAGIC}{SEAL_VERSION}\n{statement}\n").into_bytes();
    let signature = key.sign(&bytes);
    bytes.extend(format!("{}\n", hex(&signature.to_bytes())).into_bytes());
    contents
        .into_iter()
        .for_each(|(_, part)| bytes.extend(part));
    Ok(bytes)
}

fn check_lock(lock: &[u8], summary: &Summary) -> Result<(), String> {
    let sha256 = hex(&Sha256::digest(lock));
    match summary.locks.iter().find(|known| **known != sha256) {
        None if summary.locks.is_empty() => {
            Err("the results name no lock, so this is not theirs".to_owned())
        }
        None => Ok(()),
        Some(other) => Err(format!(
            "has the digest {sha256}, but results were measured with the lock {other}"
        )),
    }
}

/// Whether a file says that it is a seal, of whatever version.
pub fn is_seal(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC.as_bytes())
}

/// Checks a seal and unpacks its results. `trusted` is the only key that will do, if given.
pub fn open(
    bytes: &[u8],
    origin: &str,
    trusted: Option<&VerifyingKey>,
) -> Result<Sealed, ReportingError> {
    opened(bytes, origin, trusted).map_err(|problem| ReportingError::input(origin, problem))
}

fn opened(bytes: &[u8], origin: &str, trusted: Option<&VerifyingKey>) -> Result<Sealed, String> {
    let (version, rest) = line(bytes).ok_or("is cut off: it has no statement")?;
    let version = version.strip_prefix(MAGIC).ok_or("is not a seal")?;
    if version != SEAL_VERSION.to_string() {
        return Err(format!(
            "is a seal of version '{version}'; this program reads version {SEAL_VERSION}"
        ));
    }
    let (text, rest) = line(rest).ok_or("is cut off: it has no statement")?;
    let signed = &bytes[..bytes.len() - rest.len()];
    let (signature, mut rest) = line(rest).ok_or("is cut off: it has no signature")?;
    record::check_text(text).map_err(|error| format!("has a damaged statement: {error}"))?;
    let statement: Statement =
        serde_json::from_str(text).map_err(|error| format!("has a damaged statement: {error}"))?;
    let key =
        parse_public_key(&statement.public_key).map_err(|_| "names a public key that is none")?;
    let signature =
        unhex(signature).ok_or("has a damaged signature: expected 128 hexadecimal digits")?;
    key.verify_strict(signed, &Signature::from_bytes(&signature))
        .map_err(|_| {
            "is not what was signed: the signature does not belong to the statement and its key"
        })?;
    if let Some(trusted) = trusted.filter(|trusted| **trusted != key) {
        let trusted = hex(trusted.as_bytes());
        return Err(format!(
            "is signed by {}, not by {trusted}",
            statement.public_key
        ));
    }
    let mut results = None;
    for part in &statement.parts {
        let Some((content, after)) = rest.split_at_checked(part.bytes) else {
            return Err(format!(
                "is cut off: {} has {} of {} bytes",
                part.name,
                rest.len(),
                part.bytes
            ));
        };
        if hex(&Sha256::digest(content)) != part.sha256 {
            return Err(format!(
                "is damaged: {} does not have the digest that was signed",
                part.name
            ));
        }
        match part.name.as_str() {
            RESULTS => results = Some(content),
            LOCK => check_lock(content, &statement.summary)
                .map_err(|problem| format!("{LOCK}: {problem}"))?,
            other => {
                return Err(format!(
                    "has a part '{other}', which this program does not know"
                ))
            }
        }
        rest = after;
    }
    if !rest.is_empty() {
        return Err(format!("has {} bytes after its last part", rest.len()));
    }
    let results = results.ok_or("has no results")?;
    let text = record::drain_bounded(GzDecoder::new(results))
        .map_err(|error| format!("{RESULTS}: {error}"))?;
    let text = String::from_utf8(text).map_err(|error| format!("{RESULTS}: {error}"))?;
    let collection =
        Collection::parse(&text, origin, RESULTS).map_err(|error| error.to_string())?;
    // As text and back, like the statement's: a number may lose its last bit on the way.
    let summary =
        serde_json::to_string(&Summary::of(&collection)).map_err(|error| error.to_string())?;
    if serde_json::from_str::<Summary>(&summary).ok().as_ref() != Some(&statement.summary) {
        return Err("says other things about its results than they do".to_owned());
    }
    Ok(Sealed {
        statement,
        collection,
    })
}

/// A line of text, and what comes after it.
fn line(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    Some((std::str::from_utf8(&bytes[..end]).ok()?, &bytes[end + 1..]))
}
