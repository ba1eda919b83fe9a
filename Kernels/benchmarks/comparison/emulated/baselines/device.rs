//! A bench on the device ptx: rows that are verified, with counters and without times.

use std::path::PathBuf;
use std::process::{Command, Output};

use record::{DeviceKind, Status};

fn bench(arguments: &[&str]) -> Output {
    let program = std::env::var("BENCH").unwrap();
    let common = ["--configs", "2x40x136x256", "--contenders", "ours"];
    let command = [&common[..], arguments].concat();
    Command::new(program).args(command).output().unwrap()
}

#[test]
fn rows_are_emulated() {
    let folder = PathBuf::from(std::env::var("TEST_TMPDIR").unwrap());
    let json = folder.join("run.json");
    let output = bench(&["--json", json.to_str().unwrap()]);
    let table = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{table}\n{output:?}");
    assert!(table.contains("emulated"), "{table}");
    let file = record::read_json(&json).unwrap();
    assert_eq!(file.meta.device.kind, DeviceKind::Ptx);
    let [row] = &file.rows[..] else {
        panic!("{} rows", file.rows.len());
    };
    assert_eq!(
        (row.status, row.verified),
        (Status::Emulated, true),
        "{row:?}"
    );
    assert!(
        row.time.is_none() && row.also_right_on.len() >= 2,
        "{row:?}"
    );
    assert_eq!(row.facts["schedules"].as_array().unwrap().len(), 8);
    let launch = &row.facts["kernels"][0]["counters"];
    assert!(launch["thread_instructions"].as_u64() > Some(0), "{launch}");
    assert!(launch["per_block"]["blocks"].as_u64() > Some(0), "{launch}");
}

#[test]
fn what_the_device_lacks_is_said() {
    for (arguments, words) in [
        (&["--device", "cuda"][..], "use --device ptx"),
        (&["--timer", "events"], "drop --timer"),
        (&["--skip-verify"], "drop --skip-verify"),
    ] {
        let output = bench(arguments);
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && text.contains(words), "{text}");
    }
}
