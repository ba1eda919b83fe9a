//! The fault suite on CUDA.

use std::path::Path;

#[test]
fn every_fault_is_caught_on_cuda() {
    if let Err(error) = device::open(device::DeviceKind::Cuda) {
        println!("SKIPPED: {error}");
        return;
    }
    let folder = std::env::var("TEST_TMPDIR").expect("set by the test runner");
    let program = std::env::var("FAULT_BENCH").expect("set by the BUILD file");
    faults::suite::check(
        Path::new(&program),
        "cuda",
        &Path::new(&folder).join("faults.json"),
    );
}
