//! Files that a user names, each no longer than it can sensibly be.

use std::path::Path;

/// PTX, launches, counters.
pub const TEXT_BYTES_MAX: u64 = 256 << 20;

/// The bytes of a file; what is no file, or is longer, is refused in a sentence.
pub fn bytes(path: &Path, most: u64) -> Result<Vec<u8>, String> {
    workspace::read(path, most).map_err(|error| format!("{}: {error}", path.display()))
}

/// The same of a text, with a bound that fits all of ours.
pub fn text(path: &Path) -> Result<String, String> {
    let bytes = bytes(path, TEXT_BYTES_MAX)?;
    String::from_utf8(bytes).map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_never_end_is_refused_in_a_sentence() {
        let folder = std::env::var("TEST_TMPDIR").expect("Bazel sets it");
        let pipe = Path::new(&folder).join("pipe.ptx");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        for path in [Path::new("/dev/zero"), &pipe, Path::new(&folder)] {
            let wanted = format!("{}: it is not a file", path.display());
            assert_eq!(text(path), Err(wanted));
        }
        let long = Path::new(&folder).join("long.ptx");
        // A hole: no byte of it is on the disk.
        let file = std::fs::File::create(&long).unwrap();
        file.set_len(1 << 30).unwrap();
        let error = text(&long).unwrap_err();
        assert!(
            error.ends_with("at most 268435456 bytes are read"),
            "{error}"
        );
    }
}
