//! Result files on disk: round trips, the schema, rejections, and failing writes.

use crate::test_samples::{failed_row, file};
use crate::*;
use std::fs;
use std::process::Command;

fn validate(json: &str) -> Result<(), String> {
    let mut compiler = boon::Compiler::new();
    let schema: serde_json::Value = serde_json::from_str(RESULT_SCHEMA).unwrap();
    compiler.add_resource("result.schema.json", schema).unwrap();
    let mut schemas = boon::Schemas::new();
    let index = compiler
        .compile("result.schema.json", &mut schemas)
        .unwrap();
    let value: serde_json::Value = serde_json::from_str(json).unwrap();
    schemas
        .validate(&value, index)
        .map_err(|error| error.to_string())
}

/// Equal up to the last bit of a number, which serde_json's default parser may lose.
fn assert_same(left: &ResultFile, right: &ResultFile) {
    fn same(left: &serde_json::Value, right: &serde_json::Value) -> bool {
        use serde_json::Value::{Array, Number, Object};
        match (left, right) {
            (Array(left), Array(right)) => {
                left.len() == right.len() && left.iter().zip(right).all(|(l, r)| same(l, r))
            }
            (Object(left), Object(right)) => {
                left.keys().eq(right.keys())
                    && left.values().zip(right.values()).all(|(l, r)| same(l, r))
            }
            (Number(left), Number(right)) => {
                let (left, right) = (left.as_f64().unwrap(), right.as_f64().unwrap());
                (left - right).abs() <= 2.0 * f64::EPSILON * left.abs()
            }
            _ => left == right,
        }
    }
    let value = |file: &ResultFile| serde_json::to_value(file).unwrap();
    assert!(
        same(&value(left), &value(right)),
        "{left:?} is not {right:?}"
    );
}

#[test]
fn what_is_written_is_what_is_read() {
    for kind in [DeviceKind::Cpu, DeviceKind::Cuda] {
        let file = file(kind);
        let text = to_json(&file).unwrap();
        assert_same(&from_json(&text, "text").unwrap(), &file);
    }
}

#[test]
fn files_match_the_schema() {
    for kind in [DeviceKind::Cpu, DeviceKind::Cuda] {
        let mut file = file(kind);
        validate(&to_json(&file).unwrap()).unwrap();
        file.meta.git = None;
        file.meta.complete = false;
        file.meta.ended_at = None;
        file.rows.clear();
        validate(&to_json(&file).unwrap()).unwrap();
    }
}

#[test]
fn the_schema_refuses_what_the_reader_refuses() {
    let text = to_json(&file(DeviceKind::Cuda)).unwrap();
    for (from, to) in [
        ("\"status\":\"ok\"", "\"status\":\"wrong\""),
        ("\"status\":\"ok\"", "\"status\":\"great\""),
        ("\"schema\": 1", "\"schema\": 2"),
        ("\"kind\": \"cuda\"", "\"kind\": \"cpu\""),
        ("\"op\":", "\"operation\":"),
        ("\"verdict\":\"faster\"", "\"verdict\":\"better\""),
    ] {
        let broken = text.replace(from, to);
        assert_ne!(broken, text, "{from}");
        assert!(validate(&broken).is_err(), "schema accepts {to}");
        assert!(from_json(&broken, "text").is_err(), "reader accepts {to}");
    }
}

#[test]
fn stable_keys_stay() {
    let text = to_json(&file(DeviceKind::Cuda)).unwrap();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    for pointer in [
        "/meta/gpu/name",
        "/rows/0/op",
        "/rows/0/status",
        "/rows/0/contender/name",
        "/rows/0/workload/name",
        "/rows/0/time/median_us",
        "/rows/0/speedup/ratio",
        "/rows/0/against_best/ratio",
    ] {
        assert!(value.pointer(pointer).is_some(), "{pointer}");
    }
    let cpu = to_json(&file(DeviceKind::Cpu)).unwrap();
    let cpu: serde_json::Value = serde_json::from_str(&cpu).unwrap();
    assert_eq!(cpu.pointer("/meta/gpu"), None);
    assert_eq!(cpu["meta"]["device"]["kind"], "cpu");
}

#[test]
fn one_row_a_line() {
    let file = file(DeviceKind::Cuda);
    let text = to_json(&file).unwrap();
    assert_eq!(
        text.lines()
            .filter(|line| line.starts_with("{\"op\":"))
            .count(),
        file.rows.len()
    );
}

#[test]
fn errors_say_where_and_what_to_do() {
    let text = to_json(&file(DeviceKind::Cuda)).unwrap();
    let message = |text: &str| from_json(text, "old.json").unwrap_err().to_string();
    let future = message(&text.replace("\"schema\": 1", "\"schema\": 99"));
    assert!(
        future.contains("old.json has schema version 99, but this program knows only 1"),
        "{future}"
    );
    let truncated = message(&text[..text.len() / 2]);
    assert!(
        truncated.contains("line ") && truncated.contains("column "),
        "{truncated}"
    );
    let foreign = message("{\"benchmarks\": []}");
    assert!(foreign.contains("missing field `meta`"), "{foreign}");
    assert!(message("").contains("not a result file"));
    let absent = read_json(std::path::Path::new("no/such.json"))
        .unwrap_err()
        .to_string();
    assert!(absent.starts_with("cannot read no/such.json"), "{absent}");
}

#[test]
fn contradictions_are_not_written() {
    let refused = |change: &dyn Fn(&mut ResultFile)| {
        let mut file = file(DeviceKind::Cuda);
        change(&mut file);
        to_json(&file).unwrap_err().to_string()
    };
    let wrong_with_time = refused(&|file| {
        file.rows[0].status = Status::Wrong;
        file.rows[0].reason = Some("off by one".into());
    });
    assert!(
        wrong_with_time.contains("rows[0] (rmsnorm_fwd 32768x256 ours)"),
        "{wrong_with_time}"
    );
    assert!(refused(&|file| file.rows[0].time = None).contains("ok without a time"));
    assert!(refused(&|file| file.rows[0].verified = false).contains("verified"));
    assert!(refused(&|file| {
        let mut emulated = failed_row("w", "c", Status::Emulated, "right");
        emulated.verified = false;
        file.rows.push(emulated);
    })
    .contains("emulated and not verified"));
    assert!(refused(&|file| file.meta.gpu = None).contains("meta.gpu"));
    assert!(refused(&|file| file.rows[0].samples_us[0] = None).contains("time.count"));
    assert!(
        refused(&|file| file.rows.push(failed_row("w", "c", Status::Error, "")))
            .contains("without a reason")
    );
    let infinite = |file: &mut ResultFile| file.rows[0].metrics.tbps = Some(f64::INFINITY);
    assert!(refused(&infinite).contains("metrics"));
}

#[test]
fn writing_replaces_the_file_and_leaves_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.json");
    write_atomic(&path, b"old").unwrap();
    write_json(&path, &file(DeviceKind::Cpu)).unwrap();
    assert_same(&read_json(&path).unwrap(), &file(DeviceKind::Cpu));
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
}

#[test]
fn a_link_stays_a_link() {
    let folder = tempfile::tempdir().unwrap();
    let (target, link) = (folder.path().join("target"), folder.path().join("link"));
    fs::write(&target, "old").unwrap();
    std::os::unix::fs::symlink(&target, &link).unwrap();
    write_atomic(&link, b"new").unwrap();
    assert_eq!(fs::read(&target).unwrap(), b"new");
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
}

#[test]
fn folders_and_full_devices_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let message = write_atomic(folder.path(), b"x").unwrap_err().to_string();
    assert!(message.contains("folder"), "{message}");
    let missing = folder.path().join("none/run.json");
    assert!(write_atomic(&missing, b"x")
        .unwrap_err()
        .to_string()
        .contains("none/run.json"));
    let full = write_atomic(std::path::Path::new("/dev/full"), b"x")
        .unwrap_err()
        .to_string();
    assert!(full.contains("No space left"), "{full}");
}

/// The other half of the next test: writes more than its process is allowed to.
#[test]
fn limited_writer() {
    let Some(path) = std::env::var_os("LIMITED_WRITER_PATH") else {
        return;
    };
    let error = write_atomic(path.as_ref(), &vec![b'x'; 1 << 20]).unwrap_err();
    println!("refused: {error}");
}

#[test]
fn a_disk_that_fills_up_keeps_the_old_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.json");
    fs::write(&path, "old").unwrap();
    // The shell's file size limit stands in for a full disk; the signal that comes with it is
    // ignored, so that the write returns an error as on a full disk.
    let output = Command::new("sh")
        .args([
            "-c",
            "trap '' XFSZ; ulimit -f 8; exec \"$0\" limited_writer --nocapture",
        ])
        .arg(std::env::current_exe().unwrap())
        .env("LIMITED_WRITER_PATH", &path)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        text.contains("refused: cannot write") && text.contains("unchanged"),
        "{text}"
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), "old");
    assert_eq!(
        fs::read_dir(&folder).unwrap().count(),
        1,
        "temporary file left behind"
    );
}

#[test]
fn a_contradictory_row_becomes_an_error_row() {
    let mut file = file(DeviceKind::Cuda);
    let good = file.rows[0].clone();
    assert_eq!(sound(good.clone(), true), good);
    let mut bad = good;
    bad.metrics.tbps = Some(f64::NAN);
    file.rows[0] = sound(bad, true);
    assert_eq!(file.rows[0].status, Status::Error);
    assert!(file.rows[0].reason.as_ref().unwrap().contains("metrics"));
    validate(&to_json(&file).unwrap()).unwrap();
}
