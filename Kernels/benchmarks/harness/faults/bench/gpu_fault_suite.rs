//! The fault suite on CUDA.

use std::path::{Path, PathBuf};

/// Runs a check with the bench and a file for its results, if there is a GPU.
fn with_gpu(name: &str, check: impl FnOnce(&Path, &Path)) {
    if let Err(error) = device::open(device::DeviceKind::Cuda) {
        workspace::say!("SKIPPED: {error}");
        return;
    }
    let folder = std::env::var("TEST_TMPDIR").expect("set by the test runner");
    let program = std::env::var("FAULT_BENCH").expect("set by the BUILD file");
    // One at a time: they measure, and they share one GPU.
    static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    check(Path::new(&program), &PathBuf::from(folder).join(name));
}

#[test]
fn every_fault_is_caught_on_cuda() {
    with_gpu("faults.json", |program, result| {
        faults::suite::check(program, "cuda", result);
    });
}

#[test]
fn who_ends_the_process_in_the_turn_of_another_answers_for_it_on_cuda() {
    with_gpu("late.json", |program, result| {
        faults::suite::check_late_end(program, "cuda", result);
    });
}

#[test]
fn a_cold_cache_is_cold_for_pinned_inputs() {
    with_gpu("cache.json", faults::suite::check_cold_cache);
}
