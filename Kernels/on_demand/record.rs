//! What a built variant says of itself.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

pub const RECORD: &str = "record.json";
pub const SCHEMA: u32 = 1;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    pub schema: u32,
    /// `quack-sm_90a-n5120`.
    pub name: String,
    /// Of the recipe, as in the lock: `0.6.5+r2`.
    pub version: String,
    /// The machine's, whose linker made `kernels.so`.
    pub cpu: String,
    /// Of what the recipe wrote, which is the same on every machine.
    pub archive_sha256: String,
    /// sha256 by file name.
    pub files: BTreeMap<String, String>,
}

/// The sha256 of bytes, in hexadecimal digits.
pub fn digest(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
