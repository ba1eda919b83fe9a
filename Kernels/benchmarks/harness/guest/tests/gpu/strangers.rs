//! Strangers' libraries in whole runs on CUDA, in the process that measures: each costs its own row at most.
//!
//! Without a GPU it says so and passes.

use std::path::PathBuf;
use std::sync::Mutex;

use faults::guests::{Expected, Race, Run};

fn file(variable: &str) -> PathBuf {
    let path = std::env::var(variable).expect("the BUILD file names it");
    std::fs::canonicalize(path).expect("it exists")
}

fn on_cuda(act: impl FnOnce(Race)) {
    if let Err(error) = device::open(device::DeviceKind::Cuda) {
        workspace::say!("SKIPPED: {error}");
        return;
    }
    // One at a time: they measure, and they share one GPU.
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let (program, zoo) = (file("FAULT_BENCH"), file("ZOO"));
    act(Race::new(&program, "cuda", &zoo));
}

fn check(expected: &[Expected]) {
    on_cuda(|race| race.check(expected));
}

#[test]
fn wrong_answers_are_caught_through_this_door_too() {
    check(&[
        ("well", "ok", ""),
        ("wrong_result", "wrong", "the oracle says"),
        ("not_a_number", "wrong", "non-finite"),
        ("unwritten_tail", "wrong", "unwritten"),
        ("out_of_bounds", "wrong", "canary"),
        ("input_mutation", "wrong", "changed the input 'x'"),
        ("cached_output", "wrong", "cached"),
        ("senses_nan", "wrong", "unwritten"),
        ("senses_garbage", "wrong", "unwritten"),
        ("idle_when_timed", "wrong", "unwritten"),
    ]);
}

#[test]
fn work_outside_of_calls_is_caught() {
    check(&[
        ("memoises", "invalid", "remembers answers"),
        ("side_stream", "invalid", "on another stream"),
        ("host_work", "invalid", "outside the timed region"),
        ("wrong_stream", "wrong", ""),
    ]);
}

#[test]
fn a_library_that_fails_costs_its_own_row() {
    check(&[
        ("crashes", "error", "signal: 11"),
        ("throws", "error", "signal: 6"),
        ("exits", "error", "exit status: 0"),
        ("fails", "error", "enqueue() returned 7"),
        ("illegal_address", "error", ""),
        ("resets_the_device", "error", ""),
        ("closes_everything", "error", ""),
        ("forks", "ok", ""),
        ("prints_megabytes", "ok", ""),
    ]);
}

#[test]
fn one_that_hangs_is_ended() {
    check(&[
        ("hangs", "timeout", "hung"),
        ("hangs_on_the_device", "timeout", "hung"),
    ]);
}

#[test]
fn what_it_does_to_others_it_answers_for() {
    check(&[("aborts_later", "error", "")]);
    check(&[("writes_to_others", "error|wrong", "")]);
    check(&[("well", "ok", ""), ("writes_to_others", "error|wrong", "")]);
}

/// The same kernel in the bench and through this door takes the same time.
#[test]
fn the_door_costs_no_time() {
    on_cuda(|race| {
        let race = Race {
            shape: "8192x8192",
            iterations: "200",
            ..race
        };
        let library = format!("well={}?well", race.zoo.display());
        let Run { output, rows } = race.run(&[library], &[]);
        let stderr = String::from_utf8_lossy(&output.stderr);
        let median = |name: &str| rows.get(name)?["time"]["median_us"].as_f64();
        let (ours, through) = (median("honest"), median("well"));
        let ratio = through.zip(ours).map(|(through, ours)| through / ours);
        let ratio = ratio.unwrap_or_else(|| panic!("no times:\n{stderr}"));
        println!("through the door {ratio:.4} of the time");
        assert!((ratio - 1.0).abs() < 0.003, "{ratio}");
    });
}
