//! Hostile zip archives: rejected by name, before anything is written.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use artifacts_lib::cancel::Cancel;
use artifacts_lib::unpack::{unpack, Bounds};
use tempfile::TempDir;
use zip::write::SimpleFileOptions;
use zip::ZipWriter;

struct Case {
    folder: TempDir,
}

impl Case {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn archive(&self) -> PathBuf {
        self.folder.path().join("a.zip")
    }

    fn target(&self) -> PathBuf {
        self.folder.path().join("out")
    }

    fn write(&self, fill: impl FnOnce(&mut ZipWriter<File>)) {
        let mut zip = ZipWriter::new(File::create(self.archive()).unwrap());
        zip.start_file("first.txt", SimpleFileOptions::default())
            .unwrap();
        zip.write_all(b"first").unwrap();
        fill(&mut zip);
        zip.finish().unwrap();
    }

    fn unpack(&self, bounds: Bounds) -> Result<(), String> {
        let done = unpack(&self.archive(), &self.target(), bounds, &Cancel::default());
        done.map_err(|error| error.to_string())
    }

    /// Expects a refusal that names the entry and leaves no file anywhere.
    fn refused(&self, bounds: Bounds, parts: &[&str]) {
        let message = self.unpack(bounds).unwrap_err();
        for part in parts {
            assert!(message.contains(part), "{message:?} does not say {part:?}");
        }
        assert!(!self.target().exists(), "something was unpacked");
        assert_eq!(
            fs::read_dir(self.folder.path()).unwrap().count(),
            1,
            "something got out"
        );
    }
}

fn add(zip: &mut ZipWriter<File>, name: &str, content: &[u8]) {
    zip.start_file(name, SimpleFileOptions::default()).unwrap();
    zip.write_all(content).unwrap();
}

#[test]
fn good_archive() {
    let case = Case::new();
    case.write(|zip| add(zip, "a/b/c.txt", b"deep"));
    case.unpack(Bounds::default()).unwrap();
    assert_eq!(fs::read(case.target().join("a/b/c.txt")).unwrap(), b"deep");
}

#[test]
fn names_that_lead_out() {
    for name in ["../evil", "a/../../evil", "/evil", "a\\..\\evil", "./evil"] {
        let case = Case::new();
        case.write(|zip| add(zip, name, b"x"));
        case.refused(Bounds::default(), &["escapes its folder"]);
    }
}

#[test]
fn symbolic_link() {
    let case = Case::new();
    case.write(|zip| {
        zip.add_symlink("link", "../..", SimpleFileOptions::default())
            .unwrap();
        add(zip, "link/evil", b"x");
    });
    case.refused(Bounds::default(), &["\"link\"", "symbolic link"]);
}

#[test]
fn bomb_by_ratio() {
    let case = Case::new();
    case.write(|zip| add(zip, "zeros", &vec![0; 4 << 20]));
    case.refused(Bounds::default(), &["\"zeros\"", "over"]);
}

#[test]
fn bomb_by_size_and_by_count() {
    let case = Case::new();
    case.write(|zip| add(zip, "more", &[1; 1000]));
    case.refused(
        Bounds {
            bytes: 1000,
            ..Bounds::default()
        },
        &["\"more\"", "over 1000 bytes"],
    );
    case.refused(
        Bounds {
            entries: 1,
            ..Bounds::default()
        },
        &["one of 2"],
    );
}

#[test]
fn a_size_that_lies() {
    let case = Case::new();
    case.write(|zip| add(zip, "liar", &[0; 5000]));
    // Both headers say 5000 = 0x1388; let them say 5.
    let mut bytes = fs::read(case.archive()).unwrap();
    for place in 0..bytes.len() - 4 {
        if bytes[place..place + 4] == [0x88, 0x13, 0, 0] {
            bytes[place..place + 4].copy_from_slice(&[5, 0, 0, 0]);
        }
    }
    fs::write(case.archive(), bytes).unwrap();
    let message = case.unpack(Bounds::default()).unwrap_err();
    assert!(message.contains("liar"), "{message}");
    let written = case.target().join("liar");
    assert!(fs::metadata(written).map_or(0, |file| file.len()) <= 5);
}

#[test]
fn not_an_archive() {
    let case = Case::new();
    fs::write(case.archive(), b"PK nothing").unwrap();
    case.refused(Bounds::default(), &["a.zip"]);
}

#[test]
fn nothing_is_replaced() {
    let case = Case::new();
    case.write(|zip| add(zip, "same.txt", b"new"));
    fs::create_dir(case.target()).unwrap();
    let old: &Path = &case.target().join("same.txt");
    fs::write(old, "old").unwrap();
    assert!(case
        .unpack(Bounds::default())
        .unwrap_err()
        .contains("already exists"));
    assert_eq!(fs::read(old).unwrap(), b"old");
}
