//! One list of integers out of a safetensors file: eight bytes with the size of a JSON header, the
//! header, and the data that it describes.
//!
//! Nothing but the header and that list is read, and nothing of either is believed unchecked.

use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{Read, Seek, SeekFrom};

/// A header of a few tensors takes a few hundred bytes.
const HEADER_MAX: u64 = 64 << 10;
/// Elements of a list: several times the sequences of any batch.
const ELEMENTS_MAX: u64 = 1 << 16;
/// The text at the start of a file that Git LFS has not fetched.
const POINTER: &[u8] = b"version ";

#[derive(Deserialize)]
struct Entry {
    dtype: String,
    shape: Vec<u64>,
    data_offsets: [u64; 2],
}

/// The list named `key`, of 32-bit or 64-bit integers; an error is the rest of a sentence about the
/// file.
pub fn read_integers(mut file: impl Read + Seek, key: &str) -> Result<Vec<i64>, String> {
    let unreadable = |error: std::io::Error| format!("cannot be read: {error}");
    let length = file.seek(SeekFrom::End(0)).map_err(unreadable)?;
    file.rewind().map_err(unreadable)?;
    if length < 8 {
        return Err(format!("has {length} bytes, too few for safetensors"));
    }
    let mut size = [0; 8];
    file.read_exact(&mut size).map_err(unreadable)?;
    if size == POINTER {
        return Err("is a Git LFS pointer; fetch the file with 'git lfs pull'".to_owned());
    }
    let size = u64::from_le_bytes(size);
    let rest = length - 8;
    if size > rest {
        return Err(format!("has a header of {size} bytes in {length}"));
    }
    if size > HEADER_MAX {
        return Err(format!(
            "has a header of {size} bytes; at most {HEADER_MAX} are read"
        ));
    }
    let mut header = vec![0; size as usize];
    file.read_exact(&mut header).map_err(unreadable)?;
    let tensors = tensors(&header, rest - size)?;
    let tensor = tensors
        .get(key)
        .ok_or_else(|| format!("has no tensor '{key}'"))?;
    let [count] = tensor.shape[..] else {
        let dimensions = tensor.shape.len();
        return Err(format!("has '{key}' of {dimensions} dimensions, not one"));
    };
    let width = match &*tensor.dtype {
        "I32" => 4,
        "I64" => 8,
        other => return Err(format!("has '{key}' of type {other}, not I32 or I64")),
    };
    if count > ELEMENTS_MAX {
        return Err(format!(
            "has '{key}' of {count} elements; at most {ELEMENTS_MAX} are read"
        ));
    }
    let [begin, end] = tensor.data_offsets;
    if end - begin != count * width {
        let bytes = end - begin;
        return Err(format!(
            "has {bytes} bytes for '{key}', not {count} elements of {width}"
        ));
    }
    let mut bytes = vec![0; (end - begin) as usize];
    file.seek(SeekFrom::Start(8 + size + begin))
        .and_then(|_| file.read_exact(&mut bytes))
        .map_err(unreadable)?;
    Ok(bytes
        .chunks_exact(width as usize)
        .map(|element| match *element {
            [a, b, c, d] => i64::from(i32::from_le_bytes([a, b, c, d])),
            [a, b, c, d, e, f, g, h] => i64::from_le_bytes([a, b, c, d, e, f, g, h]),
            _ => unreachable!("elements of 4 or 8 bytes"),
        })
        .collect())
}

/// The tensors of a header, all within `space` bytes and none on top of another.
fn tensors(header: &[u8], space: u64) -> Result<BTreeMap<String, Entry>, String> {
    let damaged = |error: serde_json::Error| format!("has a damaged header: {error}");
    let members: BTreeMap<String, Value> = serde_json::from_slice(header).map_err(damaged)?;
    let mut tensors = BTreeMap::new();
    for (name, member) in members {
        if name == "__metadata__" {
            continue;
        }
        let entry: Entry = serde_json::from_value(member).map_err(damaged)?;
        let [begin, end] = entry.data_offsets;
        if begin > end || end > space {
            return Err(format!(
                "has '{name}' at bytes {begin} to {end} of {space} bytes of data"
            ));
        }
        tensors.insert(name, entry);
    }
    let mut places: Vec<(&[u64; 2], &String)> = tensors
        .iter()
        .map(|(name, entry)| (&entry.data_offsets, name))
        .collect();
    places.sort();
    for pair in places.windows(2) {
        let ((before, first), (after, second)) = (pair[0], pair[1]);
        if after[0] < before[1] {
            return Err(format!("has '{first}' and '{second}' in the same bytes"));
        }
    }
    Ok(tensors)
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use std::io::Cursor;

    /// A file with this header and data.
    pub fn file(header: &str, data: &[u8]) -> Vec<u8> {
        let size = (header.len() as u64).to_le_bytes();
        [&size[..], header.as_bytes(), data].concat()
    }

    const HEADER: &str = r#"{"__metadata__": {"format": "pt"},
        "a": {"dtype": "I32", "shape": [3], "data_offsets": [0, 12]},
        "b": {"dtype": "I64", "shape": [1], "data_offsets": [12, 20]},
        "c": {"dtype": "F32", "shape": [1, 1], "data_offsets": [20, 24]}}"#;

    fn data() -> Vec<u8> {
        let a = [0, 5, -7_i32].map(i32::to_le_bytes).concat();
        [a, (1_i64 << 40).to_le_bytes().to_vec(), vec![0; 4]].concat()
    }

    fn read(header: &str, key: &str) -> Result<Vec<i64>, String> {
        read_integers(Cursor::new(file(header, &data())), key)
    }

    #[test]
    fn both_widths_are_read() {
        assert_eq!(read(HEADER, "a").unwrap(), [0, 5, -7]);
        assert_eq!(read(HEADER, "b").unwrap(), [1 << 40]);
    }

    #[test]
    fn hostile_files_are_refused_by_a_sentence() {
        let refused = |from: &str, to: &str, key: &str| {
            assert!(HEADER.contains(from), "{from}");
            read(&HEADER.replacen(from, to, 1), key).unwrap_err()
        };
        assert_eq!(refused("\"a\"", "\"d\"", "a"), "has no tensor 'a'");
        assert_eq!(
            refused("[1, 1]", "[1, 1]", "c"),
            "has 'c' of 2 dimensions, not one"
        );
        assert!(refused("I32", "F16", "a").contains("of type F16, not I32 or I64"));
        assert!(refused("[3]", "[4]", "a").contains("12 bytes for 'a', not 4 elements of 4"));
        assert!(refused("[3]", "[18446744073709551615]", "a").contains("at most 65536"));
        assert!(refused("[0, 12]", "[12, 0]", "a").contains("at bytes 12 to 0 of 24"));
        assert!(refused("[20, 24]", "[20, 25]", "a").contains("at bytes 20 to 25 of 24"));
        let told = refused("[12, 20]", "[11, 19]", "a");
        assert_eq!(told, "has 'a' and 'b' in the same bytes");
        assert!(refused("[0, 12]", "[0, -12]", "a").contains("damaged header"));
        assert!(refused("\"a\": {", "\"a\": [", "a").contains("damaged header"));
        let whole = |bytes: &[u8]| read_integers(Cursor::new(bytes), "a").unwrap_err();
        assert_eq!(whole(b"1234"), "has 4 bytes, too few for safetensors");
        let told = whole(&file(HEADER, &data())[..40]);
        assert!(told.contains("bytes in 40"), "{told}");
        assert!(whole(&[0xff; 40]).contains("has a header of 18446744073709551615 bytes in 40"));
        let large = whole(&file(&" ".repeat(70_000), &[]));
        assert!(large.contains("at most 65536 are read"), "{large}");
        let pointer = whole(b"version https://git-lfs.github.com/spec/v1\n");
        assert!(pointer.contains("git lfs pull"), "{pointer}");
    }
}
