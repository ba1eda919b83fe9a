//! `report history`: lines that are appended, and trends over a folder of runs.

use record::{ContenderKind, ResultFile};
use report_testing::{file, pair, row, run, Noise};
use serde_json::Value;
use std::path::Path;

/// A run on a day, at a ratio of ours to the baseline.
fn on(day: usize, ratio: f64, version: &str) -> ResultFile {
    let mut noise = Noise::new(day as u64);
    let mut samples = |scale: f64| {
        (0..40)
            .map(|_| 100.0 * scale * (1.0 + 0.003 * noise.gauss()))
            .collect()
    };
    let mut baseline = row("op", 1024, "quack", ContenderKind::Baseline, samples(ratio));
    baseline.contender.version = version.to_owned();
    let mut own = row("op", 1024, "ours", ContenderKind::Own, samples(1.0));
    pair(&mut own, &baseline);
    let mut made = file("NVIDIA H200", vec![own, baseline]);
    made.meta.started_at = format!("2026-03-{day:02}T00:00:00Z");
    made
}

fn folder_of_runs(folder: &Path, after: f64) {
    std::fs::create_dir_all(folder.join("runs/late")).unwrap();
    for day in 1..=24 {
        let (late, level) = if day > 14 {
            ("late/", after)
        } else {
            ("", 1.10)
        };
        let version = if day > 14 { "2.0" } else { "1.0" };
        let path = folder.join(format!("runs/{late}{day}.json"));
        record::write_json(&path, &on(day, level, version)).unwrap();
    }
    std::fs::write(folder.join("runs/notes.json"), "{}").unwrap();
}

fn trends(folder: &Path) -> (String, Value, String) {
    let arguments = [
        "history",
        "runs",
        "-o",
        "page.html",
        "--json",
        "trends.json",
    ];
    let (code, said, told) = run(folder, &arguments);
    assert_eq!(code, 0, "{told}");
    assert!(told.contains("left out: runs/notes.json"), "{told}");
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    (
        said,
        serde_json::from_str(&read("trends.json")).unwrap(),
        read("page.html"),
    )
}

#[test]
fn a_step_over_a_folder_of_runs_is_found_and_noise_is_not() {
    let folder = tempfile::tempdir().unwrap();
    folder_of_runs(folder.path(), 1.07);
    let (said, json, page) = trends(folder.path());
    let series = json["series"].as_array().unwrap();
    let ours = series
        .iter()
        .find(|series| series["name"] == "op bf16 quack: ours over quack")
        .unwrap();
    assert_eq!(ours["runs"].as_array().unwrap().len(), 24);
    assert_eq!(ours["changes"].as_array().unwrap().len(), 1, "{ours:#}");
    let change = &ours["changes"][0];
    assert_eq!(change["started_at"], "2026-03-15T00:00:00Z");
    let near = |value: &Value, expected: f64| (value.as_f64().unwrap() - expected).abs() < 0.003;
    assert!(
        near(&change["before"], 1.10) && near(&change["after"], 1.07),
        "{change}"
    );
    assert_eq!(ours["versions"][0]["what"], "quack 1.0 -> 2.0");
    assert!(
        said.contains("NVIDIA H200, op bf16 quack: ours over quack: 1."),
        "{said}"
    );
    assert!(said.contains("since 2026-03-15T00:00:00Z"), "{said}");
    assert!(page.contains("<td>2026-03-15T00:00:00Z") && page.contains("quack 1.0 -&gt; 2.0"));
    assert!(page.contains("script-src 'none'") && !page.contains("<script"));
    assert!(page.contains("<svg") && !page.contains(" style="));

    folder_of_runs(folder.path(), 1.10);
    let (said, json, page) = trends(folder.path());
    assert_eq!(said, "");
    let all = json["series"].as_array().unwrap();
    assert!(
        all.iter()
            .all(|series| series["changes"] == serde_json::json!([])),
        "{json:#}"
    );
    assert!(page.contains("0 of 2 comparisons changed"));
}

#[test]
fn lines_are_appended_and_are_a_history_themselves() {
    let folder = tempfile::tempdir().unwrap();
    for day in 1..=3 {
        record::write_json(&folder.path().join("run.json"), &on(day, 1.1, "1.0")).unwrap();
        let (code, _, told) = run(
            folder.path(),
            &["history", "run.json", "--append", "all.jsonl"],
        );
        assert_eq!(code, 0, "{told}");
    }
    let text = std::fs::read_to_string(folder.path().join("all.jsonl")).unwrap();
    assert_eq!(text.lines().count(), 3);
    assert!(
        text.lines()
            .all(|line| line.contains("\"versions\":{\"ours\":\"1.0\",\"quack\":\"1.0\"}")),
        "{text}"
    );
    let arguments = [
        "history",
        "all.jsonl",
        "run.json",
        "--json",
        "trends.json",
        "-o",
        "page.html",
    ];
    let (code, _, told) = run(folder.path(), &arguments);
    assert_eq!(code, 0, "{told}");
    let json = std::fs::read_to_string(folder.path().join("trends.json")).unwrap();
    let json: Value = serde_json::from_str(&json).unwrap();
    // The last run is there twice, and counts once.
    assert_eq!(json["series"][0]["runs"].as_array().unwrap().len(), 3);
    assert_eq!(json["series"][0]["enough_runs"], false);
    let page = std::fs::read_to_string(folder.path().join("page.html")).unwrap();
    assert!(page.contains("2 have fewer than 10 runs"), "{page}");

    std::fs::write(
        folder.path().join("all.jsonl"),
        format!("{text}{{\"broken\"\n"),
    )
    .unwrap();
    for (arguments, part) in [
        (
            &["history", "run.json", "--append", "all.jsonl"][..],
            "all.jsonl:4: is not a line of history",
        ),
        (
            &["history", "all.jsonl", "-o", "new.html"],
            "all.jsonl:4: is not a line of history",
        ),
        (&["history", "nothing", "-o", "new.html"], "nothing"),
    ] {
        let (code, _, told) = run(folder.path(), arguments);
        assert!(code == 2 && told.contains(part), "{code} {told}");
        assert!(!folder.path().join("new.html").exists());
    }
}

#[test]
fn the_committed_results_are_a_history_of_one() {
    let folder = tempfile::tempdir().unwrap();
    let suite = report_testing::committed("suite.json.gz");
    let (code, _, told) = run(
        folder.path(),
        &["history", suite.to_str().unwrap(), "--json", "trends.json"],
    );
    assert_eq!(code, 0, "{told}");
    let json = std::fs::read_to_string(folder.path().join("trends.json")).unwrap();
    let json: Value = serde_json::from_str(&json).unwrap();
    let all = json["series"].as_array().unwrap();
    let named = |name: &str| {
        all.iter()
            .find(|series| series["name"] == name)
            .unwrap_or_else(|| panic!("{name}"))
    };
    let run = &named("decode bf16 llama: ours over the best other")["runs"][0];
    assert_eq!(run["started_at"], "2026-11-15T22:32:02Z");
    let ratio = run["ratio"].as_f64().unwrap();
    assert!((ratio - RATIO).abs() < 5e-4, "{ratio}");
}

/// As `report summarize` prints it for the same file.
const RATIO: f64 = 1.082;
