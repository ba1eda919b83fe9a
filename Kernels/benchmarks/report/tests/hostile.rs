//! Result files from somebody who means harm: every command refuses them at once, or survives them.

use record::{ContenderKind, ResultFile, Row};
use report_testing::{file, row};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

fn program() -> PathBuf {
    std::fs::canonicalize(std::env::var("REPORT").unwrap()).unwrap()
}

/// Within 512 MB and ten seconds of processor time.
fn report(folder: &Path, arguments: &[&str]) -> Output {
    let script = "ulimit -v 524288; ulimit -t 10; exec \"$0\" \"$@\"";
    Command::new("sh")
        .args(["-c", script])
        .arg(program())
        .args(arguments)
        .current_dir(folder)
        .env("TMPDIR", folder)
        .env_remove("BUILD_WORKING_DIRECTORY")
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn one(op: &str, contender: &str) -> Row {
    row(
        op,
        64,
        contender,
        ContenderKind::Baseline,
        vec![1.0, 1.1, 1.2],
    )
}

const COMMANDS: [&[&str]; 7] = [
    &["merge", "evil.json", "-o", "out.json"],
    &["summarize", "evil.json", "--rows"],
    &["compare", "evil.json", "evil.json"],
    &["plot", "evil.json", "-o", "plots"],
    &["html", "evil.json", "-o", "out.html"],
    &["export", "evil.json", "--format", "nvbench", "-o", "out.nv"],
    &["verify", "evil.json", "--programs", "."],
];

/// Every command exits with 2, says why in one clean line, and writes nothing.
fn refused(json: &[u8], why: &str) {
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("evil.json"), json).unwrap();
    for arguments in COMMANDS {
        let output = report(folder.path(), arguments);
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {stderr}");
        assert!(stderr.contains(why), "{arguments:?}: {stderr}");
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
        assert!(
            stderr.trim_end().chars().all(record::is_plain),
            "{stderr:?}"
        );
        let left = std::fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(left, 1, "{arguments:?} left something behind");
    }
}

/// The JSON of a file, whatever its own check thinks of it.
fn json(file: &ResultFile) -> Vec<u8> {
    serde_json::to_vec(file).unwrap()
}

#[test]
fn absurd_magnitudes_are_refused() {
    let plain = file("NVIDIA H200", vec![one("op", "a")]);
    for spoil in [
        |row: &mut Row| row.time.as_mut().unwrap().max_us = 1.7e308,
        |row: &mut Row| row.time.as_mut().unwrap().max_us = 1e99,
        |row: &mut Row| row.time.as_mut().unwrap().std_us = Some(1e60),
        |row: &mut Row| row.metrics.tbps = Some(1e90),
        |row: &mut Row| row.metrics.tflops = Some(1e-90),
        |row: &mut Row| row.samples_us[0] = Some(1e50),
        |row: &mut Row| row.enqueue_us = Some(1e50),
    ] {
        let mut evil = plain.clone();
        spoil(&mut evil.rows[0]);
        refused(&json(&evil), "evil.json");
    }
    let mut roofs = plain.clone();
    for roof in &mut roofs.meta.roofs {
        roof.value = 1e80;
    }
    if !roofs.meta.roofs.is_empty() {
        refused(&json(&roofs), "cannot have been measured");
    }
}

#[test]
fn too_many_of_anything_is_refused() {
    let mut axes = file("NVIDIA H200", vec![one("op", "a")]);
    for axis in 0..300 {
        axes.rows[0]
            .workload
            .axes
            .insert(format!("a{axis}"), axis.into());
    }
    refused(&json(&axes), "axes");
    for axis in 0..3000 {
        axes.rows[0]
            .workload
            .axes
            .insert(format!("a{axis}"), axis.into());
    }
    refused(&json(&axes), "members");
    let contenders = (0..1500).map(|index| one("op", &format!("c{index}")));
    refused(
        &json(&file("NVIDIA H200", contenders.collect())),
        "contenders",
    );
    let ops = (0..1500).map(|index| one(&format!("op{index}"), "c"));
    refused(&json(&file("NVIDIA H200", ops.collect())), "operations");
    let runs: Vec<String> = (0..1500)
        .map(|index| {
            let one = file(&format!("device {index}"), vec![one("op", "a")]);
            let text = text(&json(&one));
            format!("{{\"origin\": \"x\",{}", text.strip_prefix('{').unwrap())
        })
        .collect();
    let devices = format!("{{\"collection\": 1, \"runs\": [{}]}}", runs.join(","));
    refused(devices.as_bytes(), "devices");
    let mut long = file("NVIDIA H200", vec![one("op", "a")]);
    long.rows[0].workload.name = "x".repeat(5000);
    refused(&json(&long), "longer than");
    let mut nested = file("NVIDIA H200", vec![one("op", "a")]);
    let axis = serde_json::json!([[1]]);
    nested.rows[0].workload.axes.insert("n".into(), axis);
    refused(&json(&nested), "neither a value nor a list");
}

#[test]
fn a_small_gzip_of_much_text_is_refused() {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let blanks = vec![b' '; 1 << 20];
    for _ in 0..150 {
        packed.write_all(&blanks).unwrap();
    }
    refused(&packed.finish().unwrap(), "MiB of text");
}

#[test]
fn control_characters_do_not_reach_the_terminal() {
    for odd in [
        "\u{1b}[2J",
        "\u{7}",
        "\r",
        "\u{9b}31m",
        "\u{202e}",
        "\u{0}",
        "\u{85}",
    ] {
        let mut evil = file("NVIDIA H200", vec![one("op", "a")]);
        evil.rows[0].contender.name += odd;
        refused(&json(&evil), "control character U+");
        let mut lines = file("NVIDIA H200", vec![one("op", "a")]);
        lines.rows[0].contender.name += "\nreport: all is well";
        refused(&json(&lines), "more than one line");
        let evil = file(&format!("NVIDIA {odd}"), vec![one("op", "a")]);
        refused(&json(&evil), "control character U+");
    }
    let folder = TempDir::new().unwrap();
    let definition =
        "{\"name\": \"\\u001b[2J\", \"op_type\": \"\\u001b]0;x\\u0007\", \"axes\": {}}";
    std::fs::write(folder.path().join("d.json"), definition).unwrap();
    let output = report(folder.path(), &["import", "d.json"]);
    assert!(!output.stderr.contains(&0x1b) && !output.stderr.is_empty());
    std::fs::write(
        folder.path().join("c.json"),
        "{\"claims\": [{\"\\u001b\": 1}]}",
    )
    .unwrap();
    let output = report(folder.path(), &["claims", "--claims", "c.json"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(!output.stderr.contains(&0x1b));
}

/// A stand-in for a bench that does what a file tells it to, or takes its time.
fn bench(folder: &Path, script: &str) {
    let path = folder.join("bench_norms");
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn verify_does_what_its_fields_say_and_not_what_a_file_says() {
    let folder = TempDir::new().unwrap();
    bench(folder.path(), "echo \"$@\" >> called");
    for words in [
        "--csv victim",
        "--csv=victim",
        "--md victim",
        "--out-dir victim",
        "--json victim",
        "--resume victim",
        "--roofs victim",
        "--iters 4000000000",
        "--contenders --csv=victim",
        "--profile",
        "victim",
    ] {
        let mut evil = file("NVIDIA H200", vec![one("op", "a")]);
        evil.rows[0].repro = format!("bench_norms --configs 64x64 {words}");
        std::fs::write(folder.path().join("evil.json"), json(&evil)).unwrap();
        let output = report(folder.path(), COMMANDS[6]);
        assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
        assert!(!folder.path().join("called").exists(), "{words}");
        assert!(!folder.path().join("victim").exists(), "{words}");
    }
}

#[test]
fn verify_ends_a_bench_that_does_not_end_and_leaves_nothing() {
    let folder = TempDir::new().unwrap();
    bench(folder.path(), "echo $$ > pid; exec sleep 600");
    let mut slow = file("NVIDIA H200", vec![one("op", "a")]);
    slow.rows[0].repro = "bench_norms --configs 64x64".to_owned();
    std::fs::write(folder.path().join("slow.json"), json(&slow)).unwrap();
    let arguments = ["verify", "slow.json", "--programs", ".", "--limit-s", "1"];
    let output = report(folder.path(), &arguments);
    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output.stdout).contains("took longer than 1 s"));
    let pid = std::fs::read_to_string(folder.path().join("pid")).unwrap();
    assert!(!Path::new(&format!("/proc/{}", pid.trim())).exists());
    let mut left: Vec<String> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort();
    assert_eq!(left, ["bench_norms", "pid", "slow.json"], "scratch is gone");
}

#[test]
fn a_spreadsheet_finds_no_formula() {
    let mut evil = file("NVIDIA H200", vec![one("op", "=HYPERLINK(\"x\")")]);
    evil.rows[0].workload.name = "@SUM(A1)".into();
    evil.rows[0].repro = "+cmd".into();
    let csv = record::to_csv(&evil);
    assert!(csv.contains("\"'=HYPERLINK(\"\"x\"\")\""), "{csv}");
    assert!(
        csv.contains(",'@SUM(A1),") && csv.contains(",'+cmd,"),
        "{csv}"
    );
}

#[test]
fn shards_of_two_divisions_are_not_one_run() {
    let folder = TempDir::new().unwrap();
    for (name, shard) in [("a.json", "1/4"), ("b.json", "2/2"), ("c.json", "2/4")] {
        let mut file = file("NVIDIA H200", vec![one(&format!("op_{name}"), "a")]);
        file.meta.shard = Some(shard.to_owned());
        std::fs::write(folder.path().join(name), json(&file)).unwrap();
    }
    let mixed = report(
        folder.path(),
        &["merge", "a.json", "b.json", "-o", "out.json"],
    );
    assert_eq!(mixed.status.code(), Some(2));
    assert!(
        text(&mixed.stderr).contains("not one run"),
        "{}",
        text(&mixed.stderr)
    );
    assert!(!folder.path().join("out.json").exists());
    let right = report(
        folder.path(),
        &["merge", "a.json", "c.json", "-o", "out.json"],
    );
    assert_eq!(right.status.code(), Some(0), "{}", text(&right.stderr));
}

/// Markup in every name that a page, a picture or a summary shows.
#[test]
fn names_are_text_wherever_they_are_shown() {
    const MARKUP: &str = "<img src=x onerror=alert(1)>\"'</script><!--";
    let spoiled = |mut row: Row| {
        for name in [
            &mut row.op,
            &mut row.dtype,
            &mut row.workload.suite,
            &mut row.workload.name,
            &mut row.workload.provenance,
            &mut row.contender.name,
            &mut row.repro,
        ] {
            *name += MARKUP;
        }
        row.facts.insert(MARKUP.into(), MARKUP.into());
        row.workload.axes.insert(MARKUP.into(), MARKUP.into());
        row
    };
    let samples = |time_us: f64| {
        (0..20)
            .map(|index| time_us + 0.01 * f64::from(index))
            .collect()
    };
    let mut rows = Vec::new();
    for size in [64, 128, 256] {
        let baseline = spoiled(row("op", size, "a", ContenderKind::Baseline, samples(1.0)));
        let mut own = spoiled(row("op", size, "b", ContenderKind::Own, samples(2.0)));
        report_testing::pair(&mut own, &baseline);
        rows.extend([own, baseline]);
    }
    let folder = TempDir::new().unwrap();
    let evil = json(&file(&format!("NVIDIA {MARKUP}"), rows));
    std::fs::write(folder.path().join("evil.json"), evil).unwrap();
    for arguments in [COMMANDS[3], COMMANDS[4]] {
        let output = report(folder.path(), arguments);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    }
    let page = std::fs::read_to_string(folder.path().join("out.html")).unwrap();
    let (before, data) = page.split_once("id=\"data\">").unwrap();
    assert!(!before.contains("<img") && before.contains("&lt;img"));
    let (data, after) = data.split_once("</script>").unwrap();
    serde_json::from_str::<serde_json::Value>(data).unwrap();
    assert!(!data.contains("<!--") && !after.contains("<img"));
    let pictures: Vec<_> = std::fs::read_dir(folder.path().join("plots"))
        .unwrap()
        .collect();
    assert!(!pictures.is_empty());
    for picture in pictures {
        let path = picture.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "svg") {
            assert!(!std::fs::read_to_string(path).unwrap().contains("<img"));
        }
    }
}
