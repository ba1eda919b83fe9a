//! `report seal` and what `report verify` makes of it: whole, damaged in any way, or from somebody else.

use ed25519_dalek::SigningKey;
use record::ContenderKind;
use report_lib::{digest, open, seal, Collection, Evidence};
use report_testing::{committed, file, row, run, sample};
use std::os::unix::fs::PermissionsExt;

fn key(seed: u8) -> SigningKey {
    SigningKey::from_bytes(&[seed; 32])
}

fn small() -> Collection {
    let samples = |scale: f64| {
        (0..12)
            .map(|round| scale * (10.0 + 0.01 * f64::from(round)))
            .collect()
    };
    let rows = vec![
        row("op", 64, "ours", ContenderKind::Own, samples(1.0)),
        row("op", 64, "quack", ContenderKind::Baseline, samples(1.1)),
    ];
    report_testing::collection(vec![file("NVIDIA H200", rows)])
}

fn problem(bytes: &[u8]) -> String {
    match open(bytes, "proof", None) {
        Ok(_) => panic!("a damaged seal was opened"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn what_was_sealed_comes_back() {
    let evidence = Evidence {
        inputs: vec![digest("a.json", b"a")],
        programs: vec![digest("bench_norms", b"program")],
        lock: None,
    };
    let bytes = seal(&small(), evidence, &key(1)).unwrap();
    let sealed = open(&bytes, "proof", Some(&key(1).verifying_key())).unwrap();
    let as_read = Collection::parse(&small().to_json().unwrap(), "small", "small").unwrap();
    assert_eq!(sealed.collection, as_read);
    let summary = &sealed.statement.summary;
    assert_eq!((summary.runs, summary.rows, summary.samples), (1, 2, 24));
    assert_eq!(summary.cards[0].power_limit_w, Some(700.0));
    assert_eq!(sealed.statement.programs[0].name, "bench_norms");
    let sha256_of_a = "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb";
    assert_eq!(sealed.statement.inputs[0].sha256, sha256_of_a);
}

#[test]
fn every_flipped_bit_is_noticed() {
    let bytes = seal(&small(), Evidence::default(), &key(1)).unwrap();
    let mut ends = bytes
        .iter()
        .enumerate()
        .filter(|(_, byte)| **byte == b'\n')
        .map(|(at, _)| at);
    let header = ends.nth(2).unwrap();
    // Each flip costs a verification, so of the parts, which have one digest, not every byte.
    for at in (0..=header)
        .chain((header + 1..bytes.len()).step_by(23))
        .chain([bytes.len() - 1])
    {
        let mut flipped = bytes.clone();
        flipped[at] ^= 1 << (at % 8);
        let told = problem(&flipped);
        assert!(told.starts_with("proof: "), "{told}");
    }
}

#[test]
fn every_kind_of_damage_has_its_sentence() {
    let bytes = seal(&small(), Evidence::default(), &key(1)).unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let lines: Vec<&[u8]> = bytes.splitn(4, |byte| *byte == b'\n').collect();
    let with = |place: usize, line: &[u8]| {
        let mut lines = lines.clone();
        lines[place] = line;
        lines.join(&b'\n')
    };
    for length in (0..bytes.len()).step_by(41) {
        problem(&bytes[..length]);
    }
    let other = seal(&sample(), Evidence::default(), &key(1)).unwrap();
    let others: Vec<&[u8]> = other.splitn(4, |byte| *byte == b'\n').collect();
    let mallory = seal(&small(), Evidence::default(), &key(2)).unwrap();
    let mallory: Vec<&[u8]> = mallory.splitn(4, |byte| *byte == b'\n').collect();
    let more = text(lines[1]).replacen("\"rows\":2", "\"rows\":3", 1);
    for (damaged, part) in [
        (
            with(0, b"head-to-head seal 2"),
            "is a seal of version '2'; this program reads version 1",
        ),
        (with(0, b"head-to-foot seal 1"), "is not a seal"),
        (with(1, more.as_bytes()), "is not what was signed"),
        (with(1, b"{}"), "has a damaged statement"),
        (with(2, others[2]), "is not what was signed"),
        (with(2, mallory[2]), "is not what was signed"),
        (with(2, b"00"), "has a damaged signature"),
        (
            with(3, others[3]),
            "is damaged: results.json.gz does not have the digest",
        ),
        (
            bytes[..bytes.len() - 1].to_vec(),
            "is cut off: results.json.gz has",
        ),
        (
            [&bytes[..], b"x"].concat(),
            "has 1 bytes after its last part",
        ),
        (b"head-to-head seal 1\n".to_vec(), "is cut off"),
    ] {
        let told = problem(&damaged);
        assert!(told.contains(part), "{told}");
    }
    let wrong = open(&bytes, "proof", Some(&key(2).verifying_key()))
        .unwrap_err()
        .to_string();
    assert!(
        wrong.contains("is signed by ") && wrong.contains(", not by "),
        "{wrong}"
    );
}

#[test]
fn a_lock_must_be_that_of_the_results() {
    let evidence = |lock: &[u8]| Evidence {
        lock: Some(lock.to_vec()),
        ..Evidence::default()
    };
    let told = seal(&small(), evidence(b"lock"), &key(1))
        .unwrap_err()
        .to_string();
    assert!(told.contains("the results name no lock"), "{told}");
    let mut locked = small();
    locked.runs[0].file.meta.artifact_lock_sha256 = Some(digest("lock", b"lock").sha256);
    let bytes = seal(&locked, evidence(b"lock"), &key(1)).unwrap();
    assert_eq!(
        open(&bytes, "proof", None).unwrap().statement.parts.len(),
        2
    );
    let told = seal(&locked, evidence(b"another"), &key(1))
        .unwrap_err()
        .to_string();
    assert!(
        told.contains("results were measured with the lock"),
        "{told}"
    );
}

#[test]
fn the_program_seals_and_verifies_the_committed_results() {
    let folder = tempfile::tempdir().unwrap();
    let suite = committed("suite.json.gz");
    let go = |arguments: &[&str]| run(folder.path(), arguments);
    let (code, said, told) = go(&[
        "seal",
        suite.to_str().unwrap(),
        "-o",
        "proof",
        "--key",
        "key",
    ]);
    assert_eq!(code, 0, "{told}");
    let public = said
        .trim_end()
        .strip_prefix("sealed 4265 rows by ")
        .unwrap()
        .to_owned();
    assert!(
        told.contains("key: a new secret key") && told.contains("no digests of programs"),
        "{told}"
    );
    let mode = std::fs::metadata(folder.path().join("key"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    let (code, said, _) = go(&["verify", "proof", "--seal-only"]);
    assert_eq!(code, 0);
    let whole = format!("the seal is whole: 4265 rows, 42256 samples, signed by {public}\n");
    let nobody = "nobody vouches for that key: give the one that you trust with --public-key\n";
    assert_eq!(said, whole.clone() + nobody);
    assert_eq!(
        go(&["verify", "proof", "--seal-only", "--public-key", &public]).1,
        whole
    );

    let bytes = std::fs::read(folder.path().join("proof")).unwrap();
    let mut damaged = bytes.clone();
    damaged[bytes.len() / 2] ^= 4;
    std::fs::write(folder.path().join("damaged"), damaged).unwrap();
    std::fs::write(folder.path().join("bare.json"), small().to_json().unwrap()).unwrap();
    let stranger: String = key(9)
        .verifying_key()
        .as_bytes()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    for (arguments, part) in [
        (
            &["verify", "damaged"][..],
            "damaged: is damaged: results.json.gz",
        ),
        (
            &["verify", "proof", "--public-key", &stranger],
            "is signed by",
        ),
        (
            &["verify", "proof", "--public-key", "me"],
            "'me' is not a public key",
        ),
        (
            &["verify", "bare.json", "--public-key", &public],
            "is not sealed, so nobody vouches for it",
        ),
        (
            &["seal", "bare.json", "-o", "key", "--key", "key"],
            "key is an input",
        ),
        (
            &["seal", "bare.json", "-o", "new", "--key", "bare.json"],
            "others can read the secret key",
        ),
        (
            &[
                "seal",
                "bare.json",
                "-o",
                "new",
                "--key",
                "key",
                "--programs",
                ".",
            ],
            "bench_norms",
        ),
    ] {
        let (code, _, told) = go(arguments);
        assert!(
            code == 2 && told.contains(part),
            "{arguments:?}: {code} {told}"
        );
        assert!(!folder.path().join("new").exists());
    }
}

/// A stand-in for a bench that returns a stored file.
#[test]
fn a_whole_seal_is_measured_again() {
    let folder = tempfile::tempdir().unwrap();
    let original = sample().runs.remove(0).file;
    record::write_json(&folder.path().join("h200.json"), &original).unwrap();
    let script = "#!/bin/sh\nfor last; do :; done\ncp h200.json \"$last\"\n";
    let bench = folder.path().join("bench_norms");
    std::fs::write(&bench, script).unwrap();
    std::fs::set_permissions(&bench, std::fs::Permissions::from_mode(0o755)).unwrap();
    let go = |arguments: &[&str]| run(folder.path(), arguments);
    let sealing = [
        "seal",
        "h200.json",
        "-o",
        "proof",
        "--key",
        "key",
        "--programs",
        ".",
    ];
    let (code, _, told) = go(&sealing);
    assert_eq!(code, 0, "{told}");
    let (code, said, told) = go(&["verify", "proof", "--programs", "."]);
    assert_eq!(code, 0, "{said}{told}");
    assert!(
        said.starts_with("the seal is whole: ")
            && said.contains("5 consistent, 0 inconsistent of 5"),
        "{said}"
    );
    assert_eq!(told, "");
    std::fs::write(&bench, format!("{script}# changed\n")).unwrap();
    let (_, _, told) = go(&["verify", "proof", "--programs", "."]);
    assert_eq!(
        told,
        "bench_norms here is another program than the sealed one\n"
    );
}
