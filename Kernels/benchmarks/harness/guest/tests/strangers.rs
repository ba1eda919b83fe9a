//! Strangers' libraries in whole runs on the CPU: each costs its own row at most, with a reason that names the fault.

use std::path::PathBuf;
use std::process::Command;

use faults::guests::{Expected, Race, Run};

fn file(variable: &str) -> PathBuf {
    let path = std::env::var(variable).expect("the BUILD file names it");
    std::fs::canonicalize(path).expect("it exists")
}

/// A library of the zoo.
fn library(name: &str) -> PathBuf {
    let folder = file("ZOO");
    let folder = folder.parent().expect("in a folder");
    folder.join(format!("lib{name}.so"))
}

/// Races libraries, each as NAME=PATH?TEXT, next to an honest contender and the baseline.
fn race(libraries: &[String], more: &[&str]) -> Run {
    on_cpu(|race| race.run(libraries, more))
}

/// Checks rows of the zoo, and that nobody else's row has suffered.
fn check(expected: &[Expected]) {
    on_cpu(|race| race.check(expected));
}

fn on_cpu<T>(act: impl FnOnce(&Race) -> T) -> T {
    let (program, zoo) = (file("FAULT_BENCH"), library("zoo"));
    act(&Race::new(&program, "cpu", &zoo))
}

#[test]
fn wrong_answers_are_caught_through_this_door_too() {
    check(&[
        ("well", "ok", ""),
        ("wrong_result", "wrong", "the oracle says"),
        ("not_a_number", "wrong", "non-finite"),
        ("right_ends", "wrong", "the oracle says"),
        ("low_precision_tail", "wrong", "the oracle says"),
        ("out_of_bounds", "wrong", "canary"),
        ("input_mutation", "wrong", "changed the input 'x'"),
        ("drops_pages", "wrong", ""),
        ("cached_output", "wrong", "cached"),
        ("previous_answer", "wrong", "cached"),
        ("precomputed", "wrong", "cached"),
        ("senses_nan", "wrong", "unwritten"),
        ("senses_garbage", "wrong", "unwritten"),
        ("only_first_set", "wrong", "unwritten"),
        ("idle_when_timed", "wrong", "unwritten"),
        ("every_third_call", "wrong", "unwritten"),
        ("half_when_timed", "wrong", ""),
    ]);
}

#[test]
fn work_outside_of_calls_is_caught() {
    check(&[
        ("memoises", "invalid", "remembers answers"),
        ("writes_late", "wrong|error", ""),
        ("works_on_waking", "wrong", "the oracle says"),
        // On a busy machine its threads keep its own answer from its core, too, until it counts as hung.
        ("crowds_out_owner", "wrong|error|invalid|timeout", ""),
        // Its thread runs only while it is called, and takes nobody else's time; on a busy machine it
        // runs for a while before the call.
        ("never_rests", "ok|error", ""),
    ]);
}

#[test]
fn a_library_that_fails_costs_its_own_row() {
    check(&[
        ("crashes", "error", "signal: 11"),
        ("crashes_when_timed", "error", "signal: 6"),
        (
            "crashes_asked",
            "error",
            "while being asked what it supports",
        ),
        ("crashes_binding", "error", "signal: 6"),
        ("crashes_destroyed", "ok", ""),
        ("exits", "error", "exit status: 0"),
        ("far_write", "error", "signal: 11"),
        ("fails", "error", "enqueue() returned 7"),
        ("null_handle", "error", "it does not feel like it"),
        ("null_without_reason", "error", "without a reason"),
        ("missing_tensor", "error", "there is no tensor 'z'"),
        ("refuses", "unsupported", "odd sizes"),
        ("closes_everything", "error", "its process ended"),
        ("forges_answers", "ok", ""),
        ("rewrites_tensors", "ok", ""),
    ]);
}

#[test]
fn one_that_hangs_is_ended() {
    check(&[
        ("hangs", "timeout", "hung"),
        ("stops_itself", "timeout", "hung"),
    ]);
}

#[test]
fn nobody_gets_out() {
    check(&[
        ("reads_files", "ok", ""),
        ("lists_folders", "ok", ""),
        ("writes_files", "ok", ""),
        ("reads_owner", "ok", ""),
        ("kills_owner", "ok", ""),
        ("signals_owner", "ok", ""),
        ("forks", "ok", ""),
        ("executes", "ok", ""),
        ("connects", "ok", ""),
        ("leaves_group", "ok", ""),
        ("outlives_owner", "ok", ""),
        ("raises_limits", "ok", ""),
        ("takes_memory", "ok", ""),
        ("has_descriptors", "ok", ""),
        ("has_environment", "ok", ""),
    ]);
}

#[test]
fn what_it_says_is_kept_apart_from_what_is_known() {
    let zoo = library("zoo");
    let named = |fault: &str| format!("{fault}={}?{fault}", zoo.display());
    let faults = [
        "well",
        "lies",
        "long_facts",
        "nonsense_facts",
        "prints_megabytes",
    ];
    let Run { output, rows } = race(&faults.map(named), &[]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    assert!(stderr.len() < 20_000, "{} bytes printed", stderr.len());
    let well = &rows["well"];
    assert_eq!(well["facts"]["library"]["name"], "zoo");
    assert_eq!(well["facts"]["library"]["says"]["threads"], 1);
    let sha256 = well["contender"]["artifact_sha256"].as_str().unwrap_or("");
    assert_eq!(sha256.len(), 64);
    assert!(well["repro"]
        .as_str()
        .is_some_and(|it| it.contains("--contender 'well=")));
    let lies = &rows["lies"]["facts"];
    assert_eq!(lies["isolation"][0], "own process");
    assert!(lies["isolation"]
        .as_array()
        .is_some_and(|it| it.contains(&"seccomp".into())));
    assert!(lies["plan_us"].is_null());
    assert_eq!(lies["library"]["says"]["plan_us"], -1e9);
    let says = |name: &str| rows[name]["facts"]["library"]["says"].to_string();
    assert!(says("long_facts").contains("not kept"));
    assert!(says("nonsense_facts").contains("not a JSON object"));
    let printed = rows["prints_megabytes"]["facts"]["printed"]
        .as_str()
        .unwrap_or("");
    assert!(
        printed.contains("all work and no play") && printed.len() < 1000,
        "{printed}"
    );
}

#[test]
fn descriptions_that_are_wrong_are_named() {
    let broken = |name: &str| format!("{name}={}", library(&format!("broken_{name}")).display());
    let other = |name: &str| format!("{name}={}", library(name).display());
    let mut libraries: Vec<String> = [
        "wrong_version",
        "short",
        "no_enqueue",
        "no_description",
        "no_symbol",
        "crashes_loaded",
        "other_ops",
    ]
    .map(broken)
    .to_vec();
    libraries.extend(["throws", "panics"].map(other));
    let text = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(text.path(), "not a library").expect("written");
    libraries.push(format!("text={}", text.path().display()));
    let Run { rows, .. } = race(&libraries, &[]);
    for (name, status, reason) in [
        ("honest", "ok", ""),
        (
            "wrong_version",
            "error",
            "built for version 7 of contender.h, and this program has version 1",
        ),
        ("short", "error", "describes itself in 16 bytes"),
        ("no_enqueue", "error", "has no function enqueue()"),
        (
            "no_description",
            "error",
            "contender_library() returned NULL",
        ),
        (
            "no_symbol",
            "error",
            "exports no function contender_library()",
        ),
        ("crashes_loaded", "error", "while being loaded"),
        (
            "other_ops",
            "unsupported",
            "solves gemm, rmsnorm_fwd, not scaled",
        ),
        ("throws", "error", "foreign exceptions"),
        ("panics", "error", "0 sizes are too few"),
        ("text", "error", "cannot be loaded"),
    ] {
        let row = &rows[name];
        let found = row["reason"].as_str().unwrap_or("");
        assert_eq!(row["status"], status, "{name}: {found}");
        assert!(found.contains(reason), "{name}: '{found}' lacks '{reason}'");
    }
}

#[test]
fn guests_are_listed_and_the_best_other_is_their_baseline() {
    let guest = format!("mine={}?well", library("zoo").display());
    let Run { output, .. } = race(std::slice::from_ref(&guest), &["--list"]);
    let listed = String::from_utf8_lossy(&output.stdout);
    let line = listed.lines().find(|line| line.trim().starts_with("mine "));
    let line = line.unwrap_or_else(|| panic!("no guest in\n{listed}"));
    for part in [" guest ", "sha256 ", "its enqueue()", "libzoo.so"] {
        assert!(line.contains(part), "no '{part}' in '{line}'");
    }
    let Run { rows, .. } = race(&[guest], &["--baseline", "best"]);
    assert_eq!(rows["mine"]["speedup"]["baseline"], "baseline");
}

/// What is printed of a wrong library is enough to see it again: its option is in the command.
#[test]
fn a_wrong_library_is_reproduced_alone() {
    let guest = format!("mine={}?wrong_result", library("zoo").display());
    let Run { output, rows } = race(&[guest], &[]);
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(
        printed.contains("'y'[63, 0] (element 6048, unit 63) is "),
        "{printed}"
    );
    let (_, commands) = printed
        .split_once("to see only that again:\n")
        .expect("a command");
    let again = Command::new("sh").args(["-c", commands.trim()]).output();
    let again = again.expect("it starts");
    assert_eq!(
        again.status.code(),
        Some(1),
        "{}",
        String::from_utf8_lossy(&again.stderr)
    );
    let printed = String::from_utf8_lossy(&again.stdout);
    let reason = rows["mine"]["reason"].as_str().expect("a reason");
    assert!(
        printed.contains(reason) && !printed.contains("honest"),
        "{printed}"
    );
}

#[test]
fn wrong_usage_is_told_from_a_wrong_library() {
    let taken = format!("honest={}?well", library("zoo").display());
    for (library, reason) in [
        (
            "/nowhere/libmine.so".to_owned(),
            "cannot read /nowhere/libmine.so",
        ),
        (taken, "there is a contender 'honest' already"),
        (
            format!("best={}?well", library("zoo").display()),
            "'best' is the fastest other in --baseline",
        ),
        ("a b=x.so".to_owned(), "is no name for a contender"),
    ] {
        let Run { output, .. } = race(&[library], &[]);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains(reason), "{stderr}");
    }
}
