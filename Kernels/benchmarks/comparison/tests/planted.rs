//! A wrong kernel among the contenders is reported as wrong, is never timed, and fails the run.

use std::process::Command;

use contender::DeviceKind;

#[test]
fn a_planted_wrong_kernel_fails_the_run() {
    for device in [DeviceKind::Cpu, DeviceKind::Cuda] {
        match device::open(device) {
            Ok(_) => fails_on(device),
            Err(error) => workspace::say!("SKIPPED: {error}"),
        }
    }
}

fn fails_on(device: DeviceKind) {
    let program = std::env::var("PLANTED").expect("PLANTED names the program");
    let folder = std::env::var("TEST_TMPDIR").expect("set by the test runner");
    let json = format!("{folder}/{device}.json");
    let output = Command::new(program)
        .args(["--iters", "10"])
        .args(["--device", &device.to_string(), "--json", &json])
        .output()
        .expect("the program starts");
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{text}");
    let file = record::read_json(json.as_ref()).expect("a valid result file");
    let row = |name: &str| {
        file.rows
            .iter()
            .find(|row| row.contender.name == name)
            .unwrap()
    };
    let planted = row("planted_wrong");
    assert_eq!(planted.status, record::Status::Wrong);
    assert!(planted.time.is_none() && planted.samples_us.is_empty());
    assert!(planted
        .reason
        .as_ref()
        .is_some_and(|reason| reason.contains("out")));
    assert_eq!(row("ours").status, record::Status::Ok);
}
