//! Reading and writing result files. A write replaces the old file completely or leaves it alone.

use crate::bounds::{check_text, plain_json, read_bounded};
use crate::{check, RecordError, ResultFile, SCHEMA_VERSION};
use serde::Deserialize;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// JSON text of a file: `meta` indented, then one line per row, so that rows can be counted, grepped
/// and compared with line tools.
pub fn to_json(file: &ResultFile) -> Result<String, RecordError> {
    check(file).map_err(|problem| RecordError::Inconsistent {
        origin: "the result".to_owned(),
        problem,
    })?;
    let unserializable = |error: serde_json::Error| RecordError::Inconsistent {
        origin: "the result".to_owned(),
        problem: error.to_string(),
    };
    let mut text = String::from("{\n\"meta\": ");
    text += &serde_json::to_string_pretty(&file.meta).map_err(unserializable)?;
    text += ",\n\"rows\": [";
    for (index, row) in file.rows.iter().enumerate() {
        text += if index == 0 { "\n" } else { ",\n" };
        text += &serde_json::to_string(row).map_err(unserializable)?;
    }
    text += "\n]\n}\n";
    Ok(plain_json(text))
}

/// Writes a result file as JSON.
pub fn write_json(path: &Path, file: &ResultFile) -> Result<(), RecordError> {
    write_atomic(path, to_json(file)?.as_bytes())
}

/// Reads a result file.
pub fn read_json(path: &Path) -> Result<ResultFile, RecordError> {
    let text = read_bounded(path)
        .and_then(|bytes| String::from_utf8(bytes).map_err(io::Error::other))
        .map_err(|source| RecordError::Read {
            path: path.to_owned(),
            source,
        })?;
    from_json(&text, &path.display().to_string())
}

/// Parses the text of a result file; `origin` names it in errors.
pub fn from_json(text: &str, origin: &str) -> Result<ResultFile, RecordError> {
    #[derive(Deserialize)]
    struct Versioned {
        meta: VersionedMeta,
    }
    #[derive(Deserialize)]
    struct VersionedMeta {
        schema: serde_json::Value,
    }
    let malformed = |error: serde_json::Error| RecordError::Malformed {
        origin: origin.to_owned(),
        line: error.line(),
        column: error.column(),
        // serde_json repeats the position at the end of its message.
        problem: error
            .to_string()
            .split(" at line ")
            .next()
            .unwrap_or_default()
            .to_owned(),
    };
    check_text(text).map_err(malformed)?;
    // Check the version first: a file of another version may fail in any field.
    let versioned: Versioned = serde_json::from_str(text).map_err(malformed)?;
    if versioned.meta.schema != SCHEMA_VERSION {
        return Err(RecordError::Schema {
            origin: origin.to_owned(),
            found: versioned.meta.schema.to_string(),
            known: SCHEMA_VERSION,
        });
    }
    let file: ResultFile = serde_json::from_str(text).map_err(malformed)?;
    check(&file).map_err(|problem| RecordError::Inconsistent {
        origin: origin.to_owned(),
        problem,
    })?;
    Ok(file)
}

/// Replaces a file atomically: temporary file in the same folder, fsync, rename. On failure the old
/// file is unchanged and the temporary one removed. Devices and pipes are written directly.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> Result<(), RecordError> {
    let result = match fs::metadata(path) {
        Ok(found) if !found.is_file() && !found.is_dir() => OpenOptions::new()
            .write(true)
            .open(path)
            .and_then(|mut file| file.write_all(bytes)),
        Ok(_) => fs::canonicalize(path).and_then(|target| replace(&target, bytes)),
        Err(_) => replace(path, bytes),
    };
    result.map_err(|source| RecordError::Write {
        path: path.to_owned(),
        source,
    })
}

fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let name = path
        .file_name()
        .ok_or_else(|| io::Error::other("not a file name"))?;
    if path.is_dir() {
        return Err(io::Error::other("it is a folder"));
    }
    let folder = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let prefix = format!(".{}.", name.to_string_lossy());
    let mut temporary = tempfile::Builder::new()
        .prefix(&prefix)
        .suffix(".tmp")
        .permissions(fs::Permissions::from_mode(0o666))
        .tempfile_in(folder)?;
    temporary.write_all(bytes)?;
    temporary.as_file().sync_all()?;
    // On failure the temporary file is removed.
    temporary.persist(path).map_err(|failed| failed.error)?;
    // Not every file system can sync a folder; the rename itself has already succeeded.
    let _ = File::open(folder).and_then(|folder| folder.sync_all());
    Ok(())
}
