//! Ten thousand rows: time and memory.

use record::{Best, ContenderKind, ResultFile};
use report_testing::{file, pair, row, Noise};
use std::process::Command;
use tempfile::TempDir;

/// This many rows, with as many samples each as rows on a GPU have, and against the best, as our programs write them:
/// what lacks that is computed from the samples, which takes longer.
fn large(rows: usize) -> ResultFile {
    let mut noise = Noise::new(1);
    let mut made = Vec::new();
    let ops = [
        "rmsnorm_fwd",
        "softmax_fwd",
        "layernorm_fwd",
        "cross_entropy_fwd",
    ];
    for index in 0..rows / 2 {
        let size = 64 * (1 + index / ops.len());
        let op = ops[index % ops.len()];
        let time_us = 2.0 + size as f64 / 250.0;
        let mut samples = |scale: f64| -> Vec<f64> {
            (0..150)
                .map(|_| time_us * scale * (1.0 + 0.01 * noise.gauss().abs()))
                .collect()
        };
        let baseline = row(op, size, "quack", ContenderKind::Baseline, samples(1.0));
        let mut own = row(op, size, "ours", ContenderKind::Own, samples(0.97));
        pair(&mut own, &baseline);
        own.against_best = own.speedup.clone().map(|speedup| Best {
            speedup,
            contested_by: Vec::new(),
            ratio_plan_1: None,
            ratio_plan_32: None,
        });
        made.extend([own, baseline]);
    }
    file("NVIDIA H200", made)
}

#[test]
fn ten_thousand_rows_are_merged_summarized_and_shown_in_time() {
    let folder = TempDir::new().unwrap();
    let whole = large(10_000);
    let mut parts = [whole.clone(), whole];
    parts[0].rows.truncate(5000);
    parts[1].rows.drain(..5000);
    for (part, name) in parts.iter().zip(["a.json", "b.json"]) {
        record::write_json(&folder.path().join(name), part).unwrap();
    }
    let program = std::fs::canonicalize(std::env::var("REPORT").unwrap()).unwrap();
    let mut seconds = 0.0;
    for arguments in [
        &["merge", "a.json", "b.json", "-o", "all.json"][..],
        &["summarize", "all.json", "-o", "summary.md"],
        &["html", "all.json", "-o", "report.html"],
    ] {
        // The limit makes an allocation beyond 300 MB fail; `times` tells the processor time.
        let script = "ulimit -v 300000; \"$0\" \"$@\" || exit 1; times";
        let output = Command::new("sh")
            .args(["-c", script])
            .arg(&program)
            .args(arguments)
            .current_dir(folder.path())
            .env_remove("BUILD_WORKING_DIRECTORY")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {said}");
        seconds += processor_seconds(&String::from_utf8_lossy(&output.stdout));
    }
    let page = std::fs::metadata(folder.path().join("report.html"))
        .unwrap()
        .len();
    println!("{seconds:.2} s, page of {:.1} MB", page as f64 / 1e6);
    let merged = report_lib::Collection::read(&folder.path().join("all.json")).unwrap();
    assert_eq!(merged.row_count(), 10_000);
    // Two seconds for each command; an idle machine needs half of that.
    assert!(seconds < 6.0, "{seconds} s");
}

/// User and system time of the shell's children: the second line, like `0m1.20s 0m0.10s`.
fn processor_seconds(times: &str) -> f64 {
    let children = times.lines().last().unwrap();
    let fields = children.split_whitespace().map(|field| {
        let (minutes, seconds) = field.trim_end_matches('s').split_once('m').unwrap();
        60.0 * minutes.parse::<f64>().unwrap() + seconds.parse::<f64>().unwrap()
    });
    fields.sum()
}
