//! Whole runs of a benchmark program on the CPU: faults, exit codes, outputs, signals.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// The program under test, given by the BUILD file.
fn program() -> PathBuf {
    let path = std::env::var("FAULT_BENCH").expect("FAULT_BENCH names the program");
    std::fs::canonicalize(path).expect("the program exists")
}

fn bench(arguments: &[&str]) -> Output {
    let output = Command::new(program())
        .args(["--device", "cpu"])
        .args(arguments)
        .output();
    output.expect("the program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

const QUICK: [&str; 4] = ["--iters", "10", "--contenders", "honest,baseline"];

#[test]
fn every_fault_is_caught_named_and_harmless_to_others() {
    let folder = TempDir::new().unwrap();
    faults::suite::check(&program(), "cpu", &folder.path().join("faults.json"));
}

#[test]
fn who_ends_the_process_in_the_turn_of_another_answers_for_it() {
    let folder = TempDir::new().unwrap();
    faults::suite::check_late_end(&program(), "cpu", &folder.path().join("late.json"));
}

#[test]
fn nobody_is_timed_while_threads_of_another_wait_actively() {
    let folder = TempDir::new().unwrap();
    faults::suite::check_rest(&program(), &folder.path().join("rest.json"));
}

#[test]
fn an_honest_run_ends_with_0_and_writes_all_forms() {
    let folder = TempDir::new().unwrap();
    let start = Instant::now();
    let output = bench(&[&QUICK[..], &["--out-dir", folder.path().to_str().unwrap()]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(start.elapsed() < Duration::from_secs(60));
    let table = text(&output.stdout);
    assert!(
        table.contains("device: cpu") && table.contains("honest"),
        "{table}"
    );
    let file = record::read_json(&folder.path().join("fault_bench.json")).unwrap();
    assert!(file.meta.complete);
    assert_eq!(file.rows.len(), 2);
    let honest = &file.rows[0];
    assert!(honest.verified && honest.checked_rounds.unwrap() >= 1);
    assert_eq!(honest.samples_us.len(), 10);
    assert_eq!(honest.speedup.as_ref().unwrap().baseline, "baseline");
    assert!(honest.errors[0].max_abs.unwrap() <= honest.errors[0].budget.max_abs);
    assert!(folder.path().join("fault_bench.csv").exists());
    assert!(folder.path().join("fault_bench.md").exists());
}

/// The first wrong element is named, and the printed command fails in the same way with nobody else in the race.
#[test]
fn a_failed_gate_says_what_is_wrong_and_how_to_see_it_again() {
    for (fault, parts) in [
        (
            "wrong_result",
            &[
                "'y'[63, 95] (element 6143, unit 63) is ",
                ", the oracle says ",
            ][..],
        ),
        (
            "not_a_number",
            &["non-finite elements to 'y', the first: 'y'[", "is NaN"],
        ),
        (
            "unwritten_tail",
            &["unwritten, the first at 'y'[63, 0] (element 6048, unit 63), the oracle says "],
        ),
        (
            "low_precision_tail",
            &["(element ", ", unit ", "the oracle says "],
        ),
    ] {
        let contenders = format!("honest,baseline,{fault}");
        let output = bench(&[
            "--configs",
            "64x96,8x8",
            "--iters",
            "3",
            "--contenders",
            &contenders,
        ]);
        assert_eq!(output.status.code(), Some(1));
        let printed = text(&output.stdout);
        for part in parts {
            assert!(printed.contains(part), "{fault}: no '{part}' in\n{printed}");
        }
        let (_, commands) = printed.split_once("to see only that again:\n").unwrap();
        assert_eq!(commands.lines().count(), 1, "{commands}");
        let folder = TempDir::new().unwrap();
        let json = folder.path().join("again.json");
        let command = format!("{} --json {}", commands.trim(), json.display());
        let again = Command::new("sh").args(["-c", &command]).output().unwrap();
        assert_eq!(again.status.code(), Some(1), "{}", text(&again.stderr));
        let rows = record::read_json(&json).unwrap().rows;
        let names: Vec<&str> = rows.iter().map(|row| &*row.contender.name).collect();
        assert_eq!(
            (names, rows[0].workload.name.as_str()),
            (vec![fault], "64x96")
        );
        assert!(
            printed.contains(rows[0].reason.as_deref().unwrap()),
            "{printed}"
        );
    }
}

#[test]
fn the_best_other_can_be_the_baseline() {
    let folder = TempDir::new().unwrap();
    let json = folder.path().join("run.json");
    let arguments = ["--baseline", "best", "--json", json.to_str().unwrap()];
    let output = bench(&[&QUICK[..], &arguments].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let row = &record::read_json(&json).unwrap().rows[0];
    let best = row.against_best.as_ref().unwrap();
    assert_eq!(row.speedup.as_ref(), Some(&best.speedup));
    assert!(row.repro.contains("--baseline best"), "{}", row.repro);
}

/// A suite goes out to a file, is edited, and comes back as rows with its names and weights.
#[test]
fn workload_files_go_out_and_come_back() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("mine.json");
    let (path, json) = (path.to_str().unwrap(), folder.path().join("a.json"));
    let output = bench(&["--export", path]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let exported = std::fs::read_to_string(path).unwrap();
    assert!(exported.contains("\"suite\": \"my_smoke\""), "{exported}");
    let edited = exported
        .replace("\"name\":\"64x96\"", "\"name\":\"hot\",\"weight\":4")
        .replace("\"n\":96", "\"n\":32");
    std::fs::write(path, &edited).unwrap();
    let arguments = ["--workloads", path, "--json", json.to_str().unwrap()];
    let output = bench(&[&QUICK[..], &arguments].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let row = &record::read_json(&json).unwrap().rows[0];
    assert_eq!(
        (&*row.workload.suite, &*row.workload.name),
        ("my_smoke", "hot")
    );
    assert_eq!(row.workload.weight, Some(4.0));
    assert_eq!(row.workload.axes["n"], 32);
    assert_eq!(row.workload.shape.as_ref().unwrap()["n"], 32);
    assert!(row.repro.contains("--workloads"), "{}", row.repro);

    let refused = |text_of_file: &str, arguments: &[&str]| {
        std::fs::write(path, text_of_file).unwrap();
        let output = bench(&[&["--workloads", path, "--list"], arguments].concat());
        assert_eq!(output.status.code(), Some(2));
        text(&output.stderr).to_owned()
    };
    let other = edited.replace("fault_bench", "bench_norms");
    assert!(refused(&other, &[]).contains("has shapes of bench_norms, not of fault_bench"));
    let own = edited.replace("my_smoke", "smoke");
    assert!(refused(&own, &[]).contains("give it another name"));
    let op = edited.replace("\"op\":\"scaled\"", "\"op\":\"folded\"");
    assert!(refused(&op, &[]).contains("no operation 'folded' for it"));
    let size = edited.replace("\"n\":32", "\"n\":-1");
    assert!(refused(&size, &[]).contains("workload 'hot': n is not a size"));
    assert!(refused(&edited, &["--suite", "smoke"]).contains("cannot be used with"));
    assert!(refused("{}", &[]).contains("is not a workload file"));
}

/// `bazel run` starts a program in its runfiles; its outputs belong in the user's working directory.
#[test]
fn relative_paths_are_the_users() {
    let user = TempDir::new().unwrap();
    let outside = TempDir::new().unwrap();
    let run = |variables: &[(&str, &Path)], arguments: &[&str]| {
        let elsewhere = TempDir::new().unwrap();
        let output = Command::new(program())
            .current_dir(elsewhere.path())
            .env_remove("HEAD_TO_HEAD_WORKING_DIRECTORY")
            .envs(variables.iter().copied())
            .args([&["--device", "cpu"], &QUICK[..], arguments].concat())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        assert_eq!(elsewhere.path().read_dir().unwrap().count(), 0);
    };
    let by_bazel = ("BUILD_WORKING_DIRECTORY", user.path());
    run(
        &[by_bazel],
        &["--json", "a.json", "--csv", "a.csv", "--md", "a.md"],
    );
    for name in ["a.json", "a.csv", "a.md"] {
        assert!(user.path().join(name).is_file(), "{name}");
    }
    run(&[by_bazel], &["--resume", "a.json", "--out-dir", "folder"]);
    assert!(user.path().join("folder/fault_bench.json").is_file());
    let by_bazelw = ("HEAD_TO_HEAD_WORKING_DIRECTORY", outside.path());
    run(&[by_bazel, by_bazelw], &["--json", "b.json"]);
    assert!(outside.path().join("b.json").is_file());

    let gone = Command::new(program())
        .env("BUILD_WORKING_DIRECTORY", user.path().join("gone"))
        .output()
        .unwrap();
    assert_eq!(gone.status.code(), Some(2));
    assert!(text(&gone.stderr).contains("cannot work in"));
}

/// Measures contenders whose plans are made by other processes, on five shapes.
fn plan_ahead(contenders: &str) -> record::ResultFile {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.json");
    let arguments = [
        "--iters",
        "10",
        "--contenders",
        contenders,
        "--configs",
        "32x48,16x8,8x8,8x24,4x8",
        "--json",
        path.to_str().unwrap(),
    ];
    let output = bench(&arguments);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    record::read_json(&path).unwrap()
}

#[test]
fn other_processes_plan_ahead_and_their_deaths_cost_no_row() {
    let file = plan_ahead("planned,abort_planning");
    assert_eq!(file.rows.len(), 10);
    assert!(file.meta.spent_s.contains_key("planning ahead"));
    let mut aborting = file
        .rows
        .iter()
        .filter(|row| row.contender.name == "abort_planning");
    assert!(aborting.all(|row| row.facts.is_empty()));
}

#[test]
fn plans_of_other_processes_reach_the_rows() {
    for row in plan_ahead("planned").rows {
        let plan = row.facts["plan"].as_str().unwrap().to_owned();
        let name = format!("{} by", row.workload.name);
        assert!(plan.starts_with(&name), "{plan} for {name}");
    }
}

#[test]
fn the_repro_command_measures_the_same_row() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.json");
    let json = ["--configs", "32x48,16x8", "--json", path.to_str().unwrap()];
    assert_eq!(bench(&[&QUICK[..], &json].concat()).status.code(), Some(0));
    let row = record::read_json(&path).unwrap().rows.remove(2);
    let mut words = row.repro.split(' ');
    assert_eq!(words.next(), Some("fault_bench"));
    let arguments: Vec<&str> = words.chain(["--json", path.to_str().unwrap()]).collect();
    let again = Command::new(program()).args(arguments).output().unwrap();
    assert_eq!(again.status.code(), Some(0), "{}", text(&again.stderr));
    let file = record::read_json(&path).unwrap();
    assert_eq!(file.rows[0].workload, row.workload);
    assert_eq!(file.rows[0].contender, row.contender);
    assert_eq!(file.rows[0].errors, row.errors);
}

#[test]
fn skipped_verification_is_marked() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.json");
    let skip = ["--skip-verify", "--json", path.to_str().unwrap()];
    let output = bench(&[&QUICK[..], &skip].concat());
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stdout).contains("unverified"));
    let file = record::read_json(&path).unwrap();
    assert!(file
        .rows
        .iter()
        .all(|row| !row.verified && row.errors.is_empty()));
}

#[test]
fn wrong_usage_ends_with_2_and_says_what_to_use() {
    for (arguments, remedy) in [
        (&["--contenders", "nobody"][..], "use one of honest"),
        (&["--suite", "unknown"], "use one of smoke"),
        (&["--op", "gemm"], "use one of scaled"),
        (&["--baseline", "nobody"], "use one of honest"),
        (&["--timer", "cupti"], "use wall"),
        (&["--json", "no/such/folder/a.json"], "does not exist"),
        (&["--configs", "1x2x3"], "expected MxN"),
        (&["--itres", "3"], "--iters"),
        (&["--quack-suite"], "unexpected argument '--quack-suite'"),
        (&["--quick", "--configs", "4x8"], "cannot be used with"),
    ] {
        let output = bench(arguments);
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {stderr}");
        assert!(stderr.contains(remedy), "{arguments:?}: {stderr}");
    }
}

#[test]
fn a_shortcut_is_its_suite() {
    assert!(text(&bench(&["--help"]).stdout).contains("Short for --suite smoke"));
    let by_name = bench(&["--suite", "smoke", "--list"]);
    assert_eq!(bench(&["--quick", "--list"]), by_name);
    assert_eq!(by_name.status.code(), Some(0));
}

#[test]
fn cuda_is_there_or_an_error_with_the_remedy() {
    let output = Command::new(program())
        .args(["--device", "cuda"])
        .args(QUICK)
        .output()
        .unwrap();
    let stderr = text(&output.stderr);
    // Whether this machine has a GPU is not for the program to say.
    let gpu = Path::new("/dev/nvidiactl").exists();
    match output.status.code() {
        Some(0) if gpu => assert!(text(&output.stdout).contains("device: cuda")),
        // 2 if the program was not built for CUDA, which is known before anything starts.
        code => assert!(
            matches!(code, Some(1 | 2)) && stderr.contains("--device cpu"),
            "{stderr}"
        ),
    }
}

#[test]
fn listing_dry_run_completions_and_profile_do_not_measure() {
    let list = text(&bench(&["--list"]).stdout);
    for word in ["smoke", "honest", "wrong_result", "smoke/64x96"] {
        assert!(list.contains(word), "{list}");
    }
    assert!(text(&bench(&["--dry-run"]).stdout).contains("MB read"));
    assert!(text(&bench(&["--completions", "bash"]).stdout).contains("fault_bench"));
    let profile = bench(&["--profile", "--contenders", "honest"]);
    assert_eq!(profile.status.code(), Some(0));
    assert!(text(&profile.stderr).contains("scaled 64x96 honest: profiled"));
}

/// Starts a run whose second workload takes long, and signals it after the first.
fn interrupted(signal: &str, result: &Path) -> Output {
    let child = Command::new(program())
        .args([
            "--device",
            "cpu",
            "--configs",
            "8x8,16x16",
            "--contenders",
            "honest,infinite_loop",
        ])
        .args([
            "--timeout-s",
            "2",
            "--iters",
            "10",
            "--json",
            result.to_str().unwrap(),
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let start = Instant::now();
    while !result.exists() {
        assert!(
            start.elapsed() < Duration::from_secs(60),
            "no checkpoint was written"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    let kill = Command::new("kill")
        .args([signal, &child.id().to_string()])
        .status()
        .unwrap();
    assert!(kill.success());
    child.wait_with_output().unwrap()
}

#[test]
fn signals_leave_a_valid_partial_result() {
    for (signal, code) in [("-INT", 130), ("-TERM", 143)] {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("partial.json");
        let output = interrupted(signal, &path);
        assert_eq!(output.status.code(), Some(code), "{}", text(&output.stderr));
        let file = record::read_json(&path).unwrap();
        assert!(!file.meta.complete);
        assert_eq!(file.rows.len(), 2);
        assert_eq!(file.rows[0].status, record::Status::Ok);
        assert_eq!(file.rows[1].status, record::Status::Timeout);
    }
}

/// A device that is always full stands in for a full disk.
#[test]
fn a_full_disk_is_a_clear_error() {
    let output = bench(&[&QUICK[..], &["--json", "/dev/full"]].concat());
    assert_eq!(output.status.code(), Some(1));
    let stderr = text(&output.stderr);
    assert!(
        stderr.contains("/dev/full") && stderr.contains("space"),
        "{stderr}"
    );
    assert!(
        text(&output.stdout).contains("honest"),
        "the table is still printed"
    );
}

fn keys(file: &record::ResultFile) -> Vec<record::RowKey> {
    let mut keys: Vec<_> = file.rows.iter().map(record::RowKey::of).collect();
    keys.sort();
    keys
}

#[test]
fn a_part_of_a_run_is_completed_without_repeating_rows() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("run.json");
    let json = path.to_str().unwrap();
    let configs = ["--configs", "8x8,16x16,24x24,32x32"];
    let whole = [&QUICK[..], &configs, &["--json", json, "--resume", json]].concat();
    // Two workloads, not complete; tests/killed.rs kills.
    let part = [&QUICK[..], &["--configs", "8x8,16x16", "--json", json]].concat();
    assert_eq!(bench(&part).status.code(), Some(0));
    let mut file = record::read_json(&path).unwrap();
    file.meta.complete = false;
    record::write_json(&path, &file).unwrap();

    let output = bench(&whole);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("2 of 4 workloads are already measured"));
    let resumed = record::read_json(&path).unwrap();
    assert!(resumed.meta.complete);
    // Samples are whole picoseconds, so they are read as they were written.
    let samples = |file: &record::ResultFile| -> Vec<_> {
        file.rows.iter().map(|row| row.samples_us.clone()).collect()
    };
    assert_eq!(samples(&resumed)[..4], samples(&file));
    assert_eq!(keys(&resumed).len(), 8);
    assert_eq!(resumed.meta.started_at, file.meta.started_at);
    // Once more there is nothing left to do, and nothing is lost.
    assert_eq!(bench(&whole).status.code(), Some(0));
    assert_eq!(
        samples(&record::read_json(&path).unwrap()),
        samples(&resumed)
    );

    let other = [&whole[..], &["--seed", "7"]].concat();
    let output = bench(&other);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("the seed was 42 and is 7"));
    assert_eq!(
        samples(&record::read_json(&path).unwrap()),
        samples(&resumed)
    );

    let mut other = resumed.clone();
    other.rows[0].contender.artifact_sha256 = Some("ab".to_owned());
    record::write_json(&path, &other).unwrap();
    let output = bench(&whole);
    assert_eq!(output.status.code(), Some(2));
    let words = "was sha256 ab and is linked in";
    assert!(
        text(&output.stderr).contains(words),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn shards_together_are_one_run() {
    let folder = TempDir::new().unwrap();
    let run = |name: &str, more: &[&str]| {
        let path = folder.path().join(name);
        let configs = ["--configs", "8x8,16x16,24x24", "--json"];
        let arguments = [&QUICK[..], &configs, &[path.to_str().unwrap()], more].concat();
        let output = bench(&arguments);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        record::read_json(&path).unwrap()
    };
    let whole = run("whole.json", &[]);
    let mut first = run("first.json", &["--shard", "1/2"]);
    let second = run("second.json", &["--shard", "2/2"]);
    assert_eq!((first.rows.len(), second.rows.len()), (4, 2));
    first.rows.extend(second.rows);
    assert_eq!(keys(&first), keys(&whole));
    let empty = bench(&["--configs", "8x8", "--shard", "2/2"]);
    assert_eq!(empty.status.code(), Some(2));
}

#[test]
fn a_time_limit_cuts_and_says_so() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("cut.json");
    let limit = ["--configs", "8x8,16x16,24x24", "--max-minutes", "0.00001"];
    let json = ["--json", path.to_str().unwrap()];
    let output = bench(&[&QUICK[..], &limit, &json].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let file = record::read_json(&path).unwrap();
    assert!(!file.meta.complete && file.rows.len() < 6);
    let warnings = &file.meta.warnings;
    assert!(warnings
        .iter()
        .any(|warning| warning.starts_with("cut by --max-minutes after")));
}

#[test]
fn the_listing_for_programs_is_json() {
    let output = bench(&["--list-json", "--configs", "8x8"]);
    let listing: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(listing["program"], "fault_bench");
    assert_eq!(listing["device"]["kind"], "cpu");
    assert_eq!(listing["workloads"][0]["name"], "8x8");
    assert_eq!(listing["suites"][0]["name"], "smoke");
}
