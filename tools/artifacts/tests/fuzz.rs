//! Locks and archives of random bytes: an error or what they say, never a crash or a path outside.

use std::fs;
use std::path::Path;

use artifacts_lib::cancel::Cancel;
use artifacts_lib::lock::Lock;
use artifacts_lib::unpack::{unpack, Bounds};

const CORPUS: &str = "tools/artifacts/tests/corpus";

#[test]
fn locks() {
    let words = [
        "\"name\": \"..\"",
        "\"kind\": \"recipe\"",
        "\"recipe\": \"../x\"",
        "\"urls\": [\"x\"]",
        "git+https://",
    ];
    let corpus = fuzz::corpus(CORPUS, "lock-");
    let parse = |text: &str| Lock::parse(text, Path::new("lock.json"));
    for seed in &corpus {
        parse(&String::from_utf8_lossy(seed)).expect("the corpus is sound");
    }
    fuzz::run("locks", &corpus, &words, |bytes| {
        let Ok(lock) = parse(&String::from_utf8_lossy(bytes)) else {
            return;
        };
        for artifact in &lock.artifacts {
            for name in [&artifact.name, &artifact.key(), &artifact.version] {
                let path = Path::new(name);
                assert_eq!(path.file_name(), Some(path.as_os_str()), "{name:?}");
                assert!(
                    !name.starts_with(['-', '.']) && !name.contains(char::is_control),
                    "{name:?}"
                );
            }
        }
        assert_eq!(
            parse(&lock.text()).expect("what was read can be written"),
            lock
        );
    });
}

#[test]
fn archives() {
    let corpus = fuzz::corpus(CORPUS, "archive-");
    let scratch = tempfile::tempdir().unwrap();
    let bounds = Bounds {
        bytes: 1 << 20,
        entries: 100,
        ratio: 100,
    };
    fuzz::run(
        "archives",
        &corpus,
        &[
            "PK\u{3}\u{4}",
            "PK\u{1}\u{2}",
            "PK\u{5}\u{6}",
            "../",
            "/etc/",
        ],
        |bytes| {
            let archive = scratch.path().join("archive");
            fs::write(&archive, bytes).unwrap();
            let out = scratch.path().join("out");
            let _ = unpack(&archive, &out.join("inner"), bounds, &Cancel::default());
            let names = |folder: &Path| -> Vec<String> {
                let entries = fs::read_dir(folder).into_iter().flatten().flatten();
                entries
                    .map(|entry| entry.file_name().to_string_lossy().into_owned())
                    .collect()
            };
            assert!(names(&out).iter().all(|name| name == "inner"));
            assert!(names(scratch.path())
                .iter()
                .all(|name| name == "archive" || name == "out"));
            let _ = fs::remove_dir_all(&out);
        },
    );
}
