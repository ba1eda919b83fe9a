//! Archived files are compressed: the rows of a result file are much alike, and gzip shrinks it to a
//! seventh without touching a digit.

use flate2::read::MultiGzDecoder;
use flate2::{Compression, GzBuilder};
use std::io::{self, Write};
use std::path::Path;

/// The first bytes of every gzip file (RFC 1952).
const MAGIC: [u8; 2] = [0x1f, 0x8b];

/// The text of a file, which may be gzipped under any name.
pub fn read_text(path: &Path) -> io::Result<String> {
    let mut bytes = record::read_bounded(path)?;
    if bytes.starts_with(&MAGIC) {
        bytes = record::drain_bounded(MultiGzDecoder::new(&bytes[..]))
            .map_err(|error| io::Error::new(error.kind(), format!("is damaged gzip: {error}")))?;
    }
    String::from_utf8(bytes).map_err(io::Error::other)
}

/// What to write under a name: gzip if it ends in `.gz`, otherwise the bytes unchanged.
pub fn packed_for(path: &Path, bytes: &[u8]) -> io::Result<Vec<u8>> {
    if path.extension().is_none_or(|extension| extension != "gz") {
        return Ok(bytes.to_vec());
    }
    // No name or time in the header: the same rows give the same file.
    let mut encoder = GzBuilder::new().write(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    encoder.finish()
}
