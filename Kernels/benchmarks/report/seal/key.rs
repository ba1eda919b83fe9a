//! Keys: a secret one in a file that only its owner can read, a public one as 64 hexadecimal digits.

use crate::ReportingError;
use ed25519_dalek::{SigningKey, VerifyingKey, SECRET_KEY_LENGTH};
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Reads the secret key, or makes one if the file is not there. True if it is new.
pub fn read_or_make_key(path: &Path) -> Result<(SigningKey, bool), ReportingError> {
    let wrong = |problem: String| ReportingError::input(path.display(), problem);
    match File::open(path) {
        Ok(file) => {
            let mode = file
                .metadata()
                .map_err(|error| wrong(error.to_string()))?
                .permissions()
                .mode()
                & 0o777;
            if mode & 0o077 != 0 {
                return Err(wrong(format!(
                    "has mode {mode:o}, so others can read the secret key; use chmod 600"
                )));
            }
            let mut text = String::new();
            file.take(1024)
                .read_to_string(&mut text)
                .map_err(|error| wrong(error.to_string()))?;
            let bytes = unhex(text.trim_end()).ok_or_else(|| {
                wrong("is not a secret key: expected 64 hexadecimal digits".into())
            })?;
            Ok((SigningKey::from_bytes(&bytes), false))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => make(path)
            .map(|key| (key, true))
            .map_err(|error| wrong(format!("cannot be made: {error}"))),
        Err(error) => Err(wrong(error.to_string())),
    }
}

fn make(path: &Path) -> std::io::Result<SigningKey> {
    let mut secret = [0; SECRET_KEY_LENGTH];
    File::open("/dev/urandom")?.read_exact(&mut secret)?;
    let folder = path
        .parent()
        .filter(|folder| *folder != Path::new(""))
        .unwrap_or(Path::new("."));
    // Temporary files have mode 0600 from the start, and one that is there by now is not replaced.
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    writeln!(file, "{}", hex(&secret))?;
    file.as_file().sync_all()?;
    file.persist_noclobber(path)
        .map_err(|failed| failed.error)?;
    Ok(SigningKey::from_bytes(&secret))
}

/// A public key given as digits.
pub fn parse_public_key(text: &str) -> Result<VerifyingKey, ReportingError> {
    let key = unhex(text.trim()).and_then(|bytes| VerifyingKey::from_bytes(&bytes).ok());
    key.filter(|key| !key.is_weak()).ok_or_else(|| {
        ReportingError::Usage(format!(
            "'{text}' is not a public key: expected the 64 hexadecimal digits that 'report seal' prints"
        ))
    })
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Lower-case digits only: there is one way to write a value.
pub fn unhex<const COUNT: usize>(text: &str) -> Option<[u8; COUNT]> {
    let digits = text.as_bytes();
    let plain = digits
        .iter()
        .all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
    if digits.len() != 2 * COUNT || !plain {
        return None;
    }
    let mut bytes = [0; COUNT];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
        let value = |digit: u8| {
            if digit > b'9' {
                digit - b'a' + 10
            } else {
                digit - b'0'
            }
        };
        *byte = value(pair[0]) << 4 | value(pair[1]);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_made_once_and_for_its_owner_only() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let (made, new) = read_or_make_key(&path).unwrap();
        assert!(new);
        assert_eq!(
            std::fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        let (read, new) = read_or_make_key(&path).unwrap();
        assert!(!new && read.to_bytes() == made.to_bytes());
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        assert!(read_or_make_key(&path)
            .unwrap_err()
            .to_string()
            .contains("mode 640"));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        std::fs::write(&path, "secret").unwrap();
        assert!(read_or_make_key(&path)
            .unwrap_err()
            .to_string()
            .contains("64 hexadecimal digits"));
        assert!(read_or_make_key(&folder.path().join("no/key"))
            .unwrap_err()
            .to_string()
            .contains("cannot be made"));
    }

    #[test]
    fn digits_have_one_spelling() {
        assert_eq!(unhex::<2>("0aff"), Some([10, 255]));
        for wrong in ["0aFF", "0af", "0aff0", "0ag0", ""] {
            assert_eq!(unhex::<2>(wrong), None);
        }
        assert!(parse_public_key(&"0".repeat(64)).is_err());
        let public = SigningKey::from_bytes(&[7; 32]).verifying_key();
        assert_eq!(parse_public_key(&hex(public.as_bytes())).unwrap(), public);
    }
}
