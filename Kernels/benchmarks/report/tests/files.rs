//! The program on good, broken and foreign files.

use report_testing::{collection, file, meta, sample};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

fn report(folder: &Path, arguments: &[&str]) -> Output {
    let program = std::env::var("REPORT").expect("REPORT names the program");
    Command::new(std::fs::canonicalize(program).expect("the program exists"))
        .current_dir(folder)
        .env_remove("BUILD_WORKING_DIRECTORY")
        .env_remove("GITHUB_STEP_SUMMARY")
        .args(arguments)
        .output()
        .expect("the program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn write(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path
}

/// The runs of the sample as separate files, `h200.json` and `b200.json`.
fn samples(folder: &Path) {
    for (run, name) in sample().runs.iter().zip(["h200.json", "b200.json"]) {
        record::write_json(&folder.join(name), &run.file).unwrap();
    }
}

#[test]
fn merging_keeps_every_run_and_drops_what_was_measured_twice() {
    let folder = TempDir::new().unwrap();
    samples(folder.path());
    let merged = |inputs: &[&str], output: &str| {
        let arguments = [&["merge"][..], inputs, &["-o", output]].concat();
        let result = report(folder.path(), &arguments);
        assert_eq!(result.status.code(), Some(0), "{}", text(&result.stderr));
        report_lib::Collection::read(&folder.path().join(output)).unwrap()
    };
    let both = merged(&["h200.json", "b200.json", "h200.json"], "both.json");
    assert_eq!(both.row_count(), sample().row_count());
    assert_eq!(both.runs.len(), 3);
    assert_eq!(both.runs[1].origin, "b200.json");
    // A suite's folder stands for the collection in it.
    let suite = folder.path().join("suite");
    std::fs::create_dir(&suite).unwrap();
    std::fs::copy(folder.path().join("both.json"), suite.join("results.json")).unwrap();
    assert_eq!(report_lib::Collection::read(&suite).unwrap(), both);
    let empty = report(folder.path(), &["summarize", "."]);
    assert_eq!(empty.status.code(), Some(2));
    assert!(text(&empty.stderr).contains("results.json"));
    // Merging a collection again changes nothing.
    let again = merged(&["both.json"], "again.json");
    assert_eq!(again, both);
    // The later run wins, whatever the order of the files.
    let mut later = sample().runs.remove(0).file;
    later.meta.started_at = "2027-01-01T00:00:00Z".into();
    later.meta.host = "later".into();
    record::write_json(&folder.path().join("later.json"), &later).unwrap();
    let newest = merged(&["later.json", "h200.json"], "newest.json");
    let kept: Vec<_> = newest
        .runs
        .iter()
        .filter(|run| !run.file.rows.is_empty())
        .collect();
    assert_eq!(kept.len(), 1);
    assert_eq!(kept[0].file.meta.host, "later");
}

#[test]
fn a_packed_collection_says_what_its_files_say() {
    let folder = TempDir::new().unwrap();
    samples(folder.path());
    let run = |arguments: &[&str]| {
        let result = report(folder.path(), arguments);
        assert_eq!(result.status.code(), Some(0), "{}", text(&result.stderr));
        text(&result.stdout)
    };
    let bytes = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    run(&["merge", "h200.json", "b200.json", "-o", "plain.json"]);
    run(&["merge", "h200.json", "b200.json", "-o", "packed.json.gz"]);
    run(&["merge", "packed.json.gz", "-o", "again.json.gz"]);
    assert!(bytes("packed.json.gz").len() * 3 < bytes("plain.json").len());
    assert_eq!(bytes("packed.json.gz"), bytes("again.json.gz"));
    // Every ratio, interval, time and error of every row, and every sample.
    let rows = |name| run(&["summarize", "--rows", name]);
    assert_eq!(rows("packed.json.gz"), rows("plain.json"));
    let read = |name| report_lib::Collection::read(&folder.path().join(name)).unwrap();
    assert_eq!(read("packed.json.gz"), read("plain.json"));

    let cut = bytes("packed.json.gz");
    std::fs::write(folder.path().join("cut.json.gz"), &cut[..cut.len() / 2]).unwrap();
    let result = report(folder.path(), &["summarize", "cut.json.gz"]);
    assert_eq!(result.status.code(), Some(2));
    let said = text(&result.stderr);
    assert!(said.contains("cut.json.gz: is damaged gzip"), "{said}");
}

#[test]
fn a_summary_has_both_devices_and_sets_them_side_by_side() {
    let folder = TempDir::new().unwrap();
    samples(folder.path());
    let result = report(folder.path(), &["summarize", "h200.json", "b200.json"]);
    let summary = text(&result.stdout);
    for part in [
        "## NVIDIA H200\n",
        "## NVIDIA B200\n",
        "## NVIDIA H200 against NVIDIA B200",
        "| rmsnorm_fwd | bf16 | quack | ours | quack |",
        "### Where we lose: 2 rows",
        "### Failures: 4 rows",
        "a <reason> & more",
    ] {
        assert!(summary.contains(part), "no '{part}' in\n{summary}");
    }
}

#[test]
fn a_step_summary_is_appended_to() {
    let folder = TempDir::new().unwrap();
    samples(folder.path());
    let summary = write(folder.path(), "step.md", "before\n");
    let program = std::fs::canonicalize(std::env::var("REPORT").unwrap()).unwrap();
    let status = Command::new(program)
        .current_dir(folder.path())
        .env("GITHUB_STEP_SUMMARY", &summary)
        .args(["summarize", "h200.json", "--github"])
        .output()
        .unwrap()
        .status;
    assert!(status.success());
    let written = std::fs::read_to_string(summary).unwrap();
    assert!(
        written.starts_with("before\n# Head-to-Head results"),
        "{written}"
    );
    let outside = report(folder.path(), &["summarize", "h200.json", "--github"]);
    assert_eq!(outside.status.code(), Some(2), "{}", text(&outside.stderr));
}

#[test]
fn a_line_of_history_has_the_geomeans_and_what_must_be_measured_is() {
    let folder = TempDir::new().unwrap();
    samples(folder.path());
    let line = |require: &str| {
        let _ = std::fs::remove_file(folder.path().join("line.jsonl"));
        let arguments = [
            "history",
            "h200.json",
            "--append",
            "line.jsonl",
            "--require",
            require,
        ];
        let result = report(folder.path(), &arguments);
        let written = std::fs::read_to_string(folder.path().join("line.jsonl")).unwrap();
        (result.status.code(), text(&result.stderr), written)
    };
    let (code, said, written) = line("ours,quack");
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(written.lines().count(), 1, "{written}");
    for part in [
        r#""commit":"4f1c2d3""#,
        r#""device":"NVIDIA H200""#,
        r#""rmsnorm_fwd bf16 quack: ours over quack":["#,
    ] {
        assert!(written.contains(part), "no '{part}' in {written}");
    }
    let (code, said, written) = line("ours,cudnn");
    assert_eq!(code, Some(1));
    assert_eq!(said, "cudnn has no rows\n");
    assert_eq!(written.lines().count(), 1, "the line is written anyway");
    let mut without = sample().runs.remove(0).file;
    without
        .rows
        .retain(|row| row.time.is_none() && row.reason.is_some());
    let (name, count) = (without.rows[0].contender.name.clone(), without.rows.len());
    without.rows.retain(|row| row.contender.name == name);
    assert!(count > 0);
    record::write_json(&folder.path().join("h200.json"), &without).unwrap();
    let (code, said, _) = line(&name);
    assert_eq!(code, Some(1));
    let reason = without.rows[0].reason.as_deref().unwrap();
    assert!(
        said.contains(" has no time in ") && said.contains(reason),
        "{said}"
    );
}

#[test]
fn broken_foreign_and_future_files_end_with_2_and_stay_as_they_are() {
    let folder = TempDir::new().unwrap();
    samples(folder.path());
    let good = std::fs::read_to_string(folder.path().join("h200.json")).unwrap();
    let merged = sample().to_json().unwrap();
    let future = |text: &str| text.replace("\"schema\": 1,", "\"schema\": 2,");
    let cases = [
        ("empty", String::new(), "is not a result file"),
        ("truncated", good[..good.len() / 2].to_owned(), "EOF"),
        ("not_json", "hello".to_owned(), "is not a result file"),
        (
            "foreign",
            "{\"benchmarks\": []}".to_owned(),
            "neither 'meta' nor 'collection'",
        ),
        ("array", "[1, 2]".to_owned(), "is not a result file"),
        ("future", future(&good), "schema version 2"),
        ("future_run", future(&merged), "schema version 2"),
        (
            "future_collection",
            merged.replace("\"collection\": 1", "\"collection\": 9"),
            "version 9",
        ),
        (
            "contradiction",
            good.replacen("\"verified\":true", "\"verified\":false", 1),
            "contradicts",
        ),
        (
            "truncated_collection",
            merged[..merged.len() - 40].to_owned(),
            "EOF",
        ),
    ];
    for (name, content, message) in cases {
        let name = format!("{name}.json");
        let path = write(folder.path(), &name, &content);
        for arguments in [
            &["merge", "h200.json", &name, "-o", "out.json"][..],
            &["summarize", &name],
            &["compare", "h200.json", &name],
            &["compare", &name, "h200.json"],
            &["verify", &name],
            &["claims", &name],
            &["history", &name, "--json", "out.json"],
            &["choose", &name, "--table", "json", "-o", "out.json"],
            &[
                "model",
                "llama-3.1-8b",
                &name,
                "--batch",
                "1",
                "--context",
                "1024",
            ],
            &["seal", &name, "-o", "out.json", "--key", "key"],
            &["export", &name, "--format", "nvbench", "-o", "out.json"],
        ] {
            let result = report(folder.path(), arguments);
            let stderr = text(&result.stderr);
            assert_eq!(result.status.code(), Some(2), "{arguments:?}: {stderr}");
            assert!(stderr.contains(message), "{arguments:?}: {stderr}");
            assert!(stderr.contains(&name), "{arguments:?}: {stderr}");
        }
        assert_eq!(std::fs::read_to_string(path).unwrap(), content);
        assert!(!folder.path().join("out.json").exists());
    }
    let missing = report(folder.path(), &["summarize", "no_such.json"]);
    assert_eq!(missing.status.code(), Some(2));
    let onto_input = report(folder.path(), &["merge", "h200.json", "-o", "h200.json"]);
    assert_eq!(onto_input.status.code(), Some(2));
    assert_eq!(
        std::fs::read_to_string(folder.path().join("h200.json")).unwrap(),
        good
    );
}

#[test]
fn compare_fails_on_what_it_is_told_to() {
    let folder = TempDir::new().unwrap();
    samples(folder.path());
    let mut slow = sample().runs.remove(0).file;
    for row in slow
        .rows
        .iter_mut()
        .filter(|row| row.contender.name == "ours")
    {
        if let Some(speedup) = &mut row.speedup {
            for ratio in [&mut speedup.ratio, &mut speedup.low, &mut speedup.high] {
                *ratio /= 1.1;
            }
        }
    }
    record::write_json(&folder.path().join("slow.json"), &slow).unwrap();
    for (new, options, code) in [
        ("h200.json", &[][..], 0),
        ("slow.json", &[], 1),
        (
            "slow.json",
            &["--fail-on", "slower", "--threshold", "2%"],
            1,
        ),
        ("slow.json", &["--fail-on", "broken"], 0),
        ("slow.json", &["--threshold", "50%"], 0),
        ("slow.json", &["--threshold", "2 apples"], 2),
        ("b200.json", &[], 2),
    ] {
        let arguments = [&["compare", "h200.json", new][..], options].concat();
        let result = report(folder.path(), &arguments);
        assert_eq!(
            result.status.code(),
            Some(code),
            "{arguments:?}: {}",
            text(&result.stdout)
        );
    }
}

#[test]
fn exports_have_the_shape_that_their_readers_want() {
    let folder = TempDir::new().unwrap();
    samples(folder.path());
    let export = |format: &str| {
        let arguments = [
            "export",
            "h200.json",
            "b200.json",
            "--format",
            format,
            "-o",
            "out.json",
        ];
        let result = report(folder.path(), &arguments);
        assert_eq!(result.status.code(), Some(0), "{}", text(&result.stderr));
        let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
        serde_json::from_str::<serde_json::Value>(&read("out.json")).unwrap()
    };
    let entries = export("github-action-benchmark");
    let first = &entries.as_array().unwrap()[0];
    assert!(first["value"].is_f64() && first["unit"] == "us" && first["name"].is_string());
    assert_eq!(entries.as_array().unwrap().len(), 2 * 16);

    let nvbench = export("nvbench");
    assert_eq!(nvbench["devices"][0]["name"], "NVIDIA H200");
    let benchmark = &nvbench["benchmarks"][0];
    assert_eq!(benchmark["name"], "rmsnorm_fwd/bf16/quack/ours");
    let state = &benchmark["states"][0];
    assert_eq!(state["is_skipped"], false);
    let summaries = state["summaries"].as_array().unwrap();
    let mean = summaries
        .iter()
        .find(|summary| summary["tag"] == "nv/cold/time/gpu/mean")
        .unwrap();
    let seconds: f64 = mean["data"][0]["value"].as_str().unwrap().parse().unwrap();
    let run = sample().runs.remove(0);
    let row = run
        .file
        .rows
        .iter()
        .find(|row| row.contender.name == "ours")
        .unwrap();
    assert!((seconds * 1e6 / row.time.as_ref().unwrap().mean_us - 1.0).abs() < 1e-6);
    let mut benchmarks = nvbench["benchmarks"].as_array().unwrap().iter();
    let faulty = "softmax_fwd/bf16/quack/faulty_wrong";
    let skipped = benchmarks
        .find(|benchmark| benchmark["name"] == faulty)
        .unwrap();
    assert_eq!(skipped["states"][0]["is_skipped"], true);
    assert!(folder.path().join("out-2.json").exists());
}

#[test]
fn claims_are_judged_on_their_own_device_only() {
    use report_lib::{judge, read_claims, views, Judgement, KNOWN_CLAIMS};
    let claims = read_claims(KNOWN_CLAIMS, "known").unwrap();
    assert!(claims.len() >= 6);
    let views = views(sample());
    let mut claim = claims
        .iter()
        .find(|claim| claim.id == "quack-norms-h100")
        .unwrap()
        .clone();
    assert!(matches!(judge(&claim, &views), Judgement::OtherDevice(..)));
    claim.device = "H200".into();
    assert!(matches!(judge(&claim, &views), Judgement::Reached(..)));
    claim.value = 1.2;
    assert!(matches!(judge(&claim, &views), Judgement::NotReached(..)));
    claim.contender = "nobody".into();
    assert_eq!(judge(&claim, &views), Judgement::NotMeasured);
    assert!(read_claims("{\"claims\": [{}]}", "x").is_err());
}

#[test]
fn verify_runs_only_benches_and_says_what_it_cannot_tell() {
    let folder = TempDir::new().unwrap();
    let mut evil = sample().runs.remove(0).file;
    evil.rows.truncate(1);
    evil.rows[0].repro = "../../bin/sh -c 'touch owned'".into();
    record::write_json(&folder.path().join("evil.json"), &evil).unwrap();
    let result = report(folder.path(), &["verify", "evil.json", "--programs", "."]);
    assert_eq!(result.status.code(), Some(3), "{}", text(&result.stderr));
    assert!(text(&result.stdout).contains("is not the name of a bench"));
    assert!(!folder.path().join("owned").exists());

    let absent = report(
        folder.path(),
        &["verify", "evil.json", "--programs", "nowhere"],
    );
    assert_eq!(absent.status.code(), Some(3));
    let empty = collection(vec![file("NVIDIA H200", Vec::new())]);
    assert_eq!(empty.runs[0].file.meta, meta("NVIDIA H200"));
    write(folder.path(), "empty.json", &empty.to_json().unwrap());
    let nothing = report(folder.path(), &["verify", "empty.json"]);
    assert_eq!(nothing.status.code(), Some(2));
}

/// A stand-in for a bench that returns a stored file.
#[test]
fn verify_compares_what_the_bench_says_now() {
    use std::os::unix::fs::PermissionsExt;
    let folder = TempDir::new().unwrap();
    samples(folder.path());
    let original = sample().runs.remove(0).file;
    let mut slower = original.clone();
    for row in &mut slower.rows {
        if let Some(speedup) = &mut row.speedup {
            for ratio in [&mut speedup.ratio, &mut speedup.low, &mut speedup.high] {
                *ratio /= 1.2;
            }
        }
        row.samples_us
            .iter_mut()
            .flatten()
            .for_each(|sample| *sample *= 1.2);
    }
    for (answer, code, word) in [
        (&original, 0, "consistent"),
        (&slower, 1, "inconsistent"),
        (&sample().runs[1].file, 3, "this is 'NVIDIA B200'"),
    ] {
        record::write_json(&folder.path().join("answer.json"), answer).unwrap();
        let script = "#!/bin/sh\nfor last; do :; done\ncp answer.json \"$last\"\n";
        let bench = write(folder.path(), "bench_norms", script);
        std::fs::set_permissions(&bench, std::fs::Permissions::from_mode(0o755)).unwrap();
        let result = report(folder.path(), &["verify", "h200.json", "--programs", "."]);
        let stdout = text(&result.stdout);
        assert_eq!(result.status.code(), Some(code), "{stdout}");
        assert!(stdout.contains(word), "{stdout}");
    }
}
