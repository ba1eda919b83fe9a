//! `report import` from the command line: what it writes and prints, and that a refusal leaves nothing.

use record::WorkloadFile;
use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;

const CORPUS: &str = "Kernels/benchmarks/report/tests/corpus";

fn report(folder: &Path, arguments: &[&str]) -> Output {
    let program = std::env::var("REPORT").expect("REPORT names the program");
    Command::new(std::fs::canonicalize(program).expect("the program exists"))
        .current_dir(folder)
        .env_remove("BUILD_WORKING_DIRECTORY")
        .args(arguments)
        .output()
        .expect("the program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A trace set as FlashInfer-Bench lays it out, of the fuzzers' corpus.
fn trace_set() -> TempDir {
    let folder = TempDir::new().unwrap();
    for (from, to) in [
        ("import-definition.json", "definitions/rmsnorm.json"),
        ("import-workloads.json", "workloads/rmsnorm.jsonl"),
        ("import-pages.json", "definitions/pages.json"),
        ("import-pages-lines.json", "workloads/gqa_paged/pages.jsonl"),
        ("safetensors-offsets", "blob/offsets.safetensors"),
        ("requests-lines.json", "requests.jsonl"),
    ] {
        let to = folder.path().join(to);
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        std::fs::write(to, std::fs::read(Path::new(CORPUS).join(from)).unwrap()).unwrap();
    }
    folder
}

const FILES: [&str; 4] = [
    "definitions/rmsnorm.json",
    "workloads/rmsnorm.jsonl",
    "definitions/pages.json",
    "workloads/gqa_paged/pages.jsonl",
];

#[test]
fn a_trace_set_becomes_a_folder_of_workload_files() {
    let folder = trace_set();
    let arguments = [&["import"][..], &FILES, &["-o", "my suites"]].concat();
    let output = report(folder.path(), &arguments);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(
        text(&output.stdout),
        "bench_norms --op rmsnorm_fwd --dtype bf16 \
         --workloads 'my suites/bench_norms-rmsnorm_h4096.json'\n\
         bench_decode --dtype bf16 \
         --workloads 'my suites/bench_decode-gqa_paged_decode_h32_kv8_d128_ps16.json'\n"
    );
    assert_eq!(
        text(&output.stderr),
        "left out: gqa_paged_decode_h32_kv8_d128_ps16, 1 of 3 workloads: 'kv_indptr' is random: its \
         values are not in the trace\n"
    );
    let suites = folder.path().join("my suites");
    let name = "bench_decode-gqa_paged_decode_h32_kv8_d128_ps16.json";
    let decode = WorkloadFile::read(&suites.join(name)).unwrap();
    assert_eq!(decode.workloads.len(), 1);
    assert_eq!(decode.workloads[0].weight, Some(2.0));
    assert_eq!(
        decode.workloads[0].shape["lengths"],
        serde_json::json!([67, 64])
    );
    WorkloadFile::read(&suites.join("bench_norms-rmsnorm_h4096.json")).unwrap();
    assert_eq!(std::fs::read_dir(suites).unwrap().count(), 2);
}

#[test]
fn without_a_folder_it_prints_what_options_can_say() {
    let folder = trace_set();
    let output = report(folder.path(), &[&["import"][..], &FILES].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(
        text(&output.stdout),
        "bench_norms --op rmsnorm_fwd --dtype bf16 --configs 1x4096,128x4096\n"
    );
    assert!(text(&output.stderr).contains("its shapes need a workload file; pass -o FOLDER"));
}

#[test]
fn a_damaged_blob_leaves_nothing_behind() {
    let folder = trace_set();
    std::fs::write(folder.path().join("blob/offsets.safetensors"), [0xff; 64]).unwrap();
    let output = report(
        folder.path(),
        &[&["import"][..], &FILES, &["-o", "out"]].concat(),
    );
    assert_eq!(output.status.code(), Some(2));
    let told = text(&output.stderr);
    assert!(
        told.contains("has a header of 18446744073709551615 bytes in 64"),
        "{told}"
    );
    assert_eq!(told.lines().count(), 1, "{told}");
    assert!(!folder.path().join("out").exists());
}

const TRACE: [&str; 7] = [
    "import",
    "--trace",
    "requests.jsonl",
    "--bench",
    "decode",
    "--heads",
    "32x8x128",
];

#[test]
fn a_serving_trace_becomes_a_workload_file() {
    let folder = trace_set();
    let output = report(
        folder.path(),
        &[&TRACE[..], &["--samples", "4", "-o", "out.json"]].concat(),
    );
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout), "bench_decode --workloads out.json\n");
    let file = WorkloadFile::read(&folder.path().join("out.json")).unwrap();
    assert_eq!((&*file.bench, &*file.suite), ("bench_decode", "requests"));
    // 499 steps decode the first request; the last 89 of the third run beside it from step 122 on.
    let weight: f64 = file.workloads.iter().filter_map(|one| one.weight).sum();
    assert_eq!((file.workloads.len(), weight), (4, 499.0));
    assert_eq!(
        file.workloads[1].shape["lengths"],
        serde_json::json!([6942, 578])
    );
    let first = std::fs::read(folder.path().join("out.json")).unwrap();
    report(
        folder.path(),
        &[&TRACE[..], &["--samples", "4", "-o", "out.json"]].concat(),
    );
    assert_eq!(
        std::fs::read(folder.path().join("out.json")).unwrap(),
        first
    );
}

#[test]
fn what_a_trace_needs_is_asked_for() {
    let folder = trace_set();
    let refused = |arguments: &[&str], why: &str| {
        let output = report(folder.path(), arguments);
        let told = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{told}");
        assert!(told.contains(why), "{told}");
    };
    refused(&TRACE, "--output");
    refused(&[&TRACE[..5], &["-o", "x"]].concat(), "--heads");
    refused(
        &[&TRACE[..], &["-o", "requests.jsonl"]].concat(),
        "is an input",
    );
    refused(
        &[&TRACE[..], &["-o", "x", "--max-batch", "0"]].concat(),
        "--max-batch must be",
    );
    refused(
        &[&TRACE[..], &["-o", "x", "definitions/rmsnorm.json"]].concat(),
        "cannot be used with",
    );
    refused(
        &["import", "definitions/rmsnorm.json", "--samples", "3"],
        "--trace",
    );
    refused(
        &["import", "requests.jsonl"],
        "neither a FlashInfer-Bench definition",
    );
    assert!(!folder.path().join("x").exists());
}
