//! Result files, collections, claims, plans of tables, FlashInfer-Bench's problems, workloads, traces and
//! stored lists, and serving traces, of random bytes: an error or a report, never a crash.

use report_lib::{claims_markdown, compare, history, import, merge, plots, read_claims, summarize};
use report_lib::{
    history_json, history_page, is_seal, open, panel, parse_lines, seal, series, table, to_cpp,
    Evidence,
};
use report_lib::{import_trace, read_integers, TraceOptions, TraceShape};
use report_lib::{
    to_github_action_benchmark, to_html, to_nvbench, views, Collection, CompareOptions,
};
use std::path::{Path, PathBuf};

const CORPUS: &str = "Kernels/benchmarks/report/tests/corpus";

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn result_files() {
    let words = [
        "\"collection\": 1,",
        "\"meta\":",
        "\"rows\": []",
        "\"status\": \"ok\"",
        "\"time\":",
        "\"samples_us\": [1]",
        "\"axes\": {\"m\": [1, 2]}",
        "\"against_best\":",
        "\"rounds_per_process\": [1, 1]",
        "\"shard\": \"1/2\",",
    ];
    let corpus = fuzz::corpus(CORPUS, "result-");
    for seed in &corpus {
        Collection::parse(&text(seed), "corpus", "corpus").expect("the corpus is sound");
    }
    let claims = read_claims(report_lib::KNOWN_CLAIMS, "known").unwrap();
    fuzz::run("result files", &corpus, &words, |bytes| {
        let Ok(collection) = Collection::parse(&text(bytes), "input", "input") else {
            return;
        };
        let options = CompareOptions {
            threshold: 0.02,
            across_devices: true,
        };
        let _ = compare(&collection, &collection, &options);
        let merged = merge(collection).collection;
        merged.to_json().expect("what was read can be written");
        let views = views(merged);
        let mut page = summarize(&views) + &to_html(&views) + &claims_markdown(&claims, &views);
        for view in &views {
            page += &record::to_csv(&view.file);
            page += &record::to_markdown(&view.file);
            page += &record::to_table(&view.file, record::TableStyle::PLAIN);
            page.extend(plots(view).into_iter().map(|plot| plot.svg));
            to_nvbench(view);
        }
        to_github_action_benchmark(&views);
        history(&views);
        panel(&views);
        if let Ok(table) = table(&views, None) {
            page += &(table.to_json() + &table.to_csv() + &to_cpp(&table));
        }
        assert!(
            page.len() < 200 * bytes.len() + (1 << 20),
            "{} bytes of report",
            page.len()
        );
    });
}

#[test]
fn problems_workloads_and_traces() {
    let words = [
        "\"definition\":",
        "\"axes\": {}",
        "{\"type\": \"var\"}",
        "\"op_type\": \"gemm\"",
        "\"op_type\": \"grouped_gemm\"",
        "\"qo_indptr\":",
        "{\"type\": \"random\"}",
        "\"value\": 0",
        "\n",
    ];
    let corpus = fuzz::corpus(CORPUS, "import-");
    // The definitions, and the file that stored inputs are in.
    let folder = tempfile::TempDir::new().unwrap();
    std::fs::create_dir(folder.path().join("blob")).unwrap();
    let blob = &fuzz::corpus(CORPUS, "safetensors-offsets")[0];
    std::fs::write(folder.path().join("blob/offsets.safetensors"), blob).unwrap();
    let known = |name: &str| {
        let text = text(&fuzz::corpus(CORPUS, name)[0]);
        (PathBuf::from(name), text)
    };
    let known = [known("import-definition.json"), known("import-pages.json")];
    let check = |files: &[(PathBuf, String)]| {
        let imported = import(files)?;
        for suite in &imported.suites {
            suite
                .workloads
                .to_json()
                .expect("what was read can be written");
        }
        Ok::<_, report_lib::ReportingError>(imported)
    };
    let with = |text: String| [&known[..], &[(folder.path().join("input"), text)]].concat();
    let lines = text(&fuzz::corpus(CORPUS, "import-pages-lines.json")[0]);
    let sound = check(&with(lines)).expect("the corpus is sound");
    assert_eq!(sound.suites[0].workloads.workloads[0].weight, Some(2.0));
    fuzz::run("problems, workloads, traces", &corpus, &words, |bytes| {
        let _ = check(&[(folder.path().join("input"), text(bytes))]);
        let _ = check(&with(text(bytes)));
    });
}

#[test]
fn stored_lists() {
    let words = [
        "\"data_offsets\":[0,12]",
        "\"dtype\":\"I64\"",
        "\"shape\":[3]",
        "\"__metadata__\":{}",
    ];
    let corpus = fuzz::corpus(CORPUS, "safetensors-");
    let read = |bytes: &[u8]| read_integers(std::io::Cursor::new(bytes), "kv_indptr");
    assert_eq!(read(&corpus[0]).expect("the corpus is sound"), [0, 5, 9]);
    fuzz::run("stored lists", &corpus, &words, |bytes| {
        if let Ok(list) = read(bytes) {
            assert!(4 * list.len() <= bytes.len());
        }
    });
}

#[test]
fn serving_traces() {
    let words = [
        "{\"timestamp\": 1, \"input_length\": 2, \"output_length\": 16777216}\n",
        "2023-11-16 18:15:46,1,16777216\n",
        "TIMESTAMP,ContextTokens,GeneratedTokens\n",
        "+23:59",
    ];
    let corpus = fuzz::corpus(CORPUS, "requests-");
    let shapes = [
        ("decode", "32x8x128"),
        ("prefill", "32x8x128"),
        ("mla_decode", "16"),
    ];
    let check = |bytes: &[u8]| {
        for (bench, heads) in shapes {
            let options = TraceOptions {
                shape: TraceShape::parse(bench, heads).unwrap(),
                max_batch: 3,
                samples: 5,
                step_ms: 0.5,
                max_prefill_tokens: Some(1000),
            };
            let file = import_trace(Path::new("input"), &text(bytes), &options)?;
            file.to_json().expect("what was read can be written");
        }
        Ok::<_, report_lib::ReportingError>(())
    };
    for name in ["requests-lines.json", "requests-table.csv"] {
        check(&fuzz::corpus(CORPUS, name)[0]).expect("the corpus is sound");
    }
    fuzz::run("serving traces", &corpus, &words, |bytes| {
        let _ = check(bytes);
    });
}

#[test]
fn claims() {
    let corpus = fuzz::corpus(CORPUS, "claims-");
    let views = views(report_testing::sample());
    fuzz::run(
        "claims",
        &corpus,
        &["\"claims\": []", "\"value\":"],
        |bytes| {
            if let Ok(claims) = read_claims(&text(bytes), "input") {
                claims_markdown(&claims, &views);
            }
        },
    );
}

#[test]
fn lines_of_history() {
    let views = views(report_testing::sample());
    let lines: Vec<String> = history(&views)
        .iter()
        .map(|line| format!("{line}\n"))
        .collect();
    let words = [
        "\"geomeans\": {",
        "[1, 1, 1]",
        "\"versions\": {}",
        "null",
        "\n",
    ];
    fuzz::run(
        "lines of history",
        &[lines.concat().into_bytes()],
        &words,
        |bytes| {
            if let Ok(lines) = parse_lines(&text(bytes), "input") {
                let all = series(lines);
                history_json(&all);
                history_page(&all);
            }
        },
    );
}

/// Bytes as they come, and with the statement signed anew, which gets past the signature.
#[test]
fn seals() {
    use ed25519_dalek::{Signer, SigningKey};
    let key = SigningKey::from_bytes(&[7; 32]);
    let good = seal(&report_testing::sample(), Evidence::default(), &key).unwrap();
    open(&good, "corpus", None).expect("the corpus is sound");
    let words = [
        "head-to-head seal 1\n",
        "\"parts\":[]",
        "\"bytes\":0",
        "artifacts.lock.json",
        "\n",
    ];
    fuzz::run("seals", &[good], &words, |bytes| {
        let _ = open(bytes, "input", Some(&key.verifying_key()));
        let ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
        let ends: Vec<usize> = ends.map(|(at, _)| at + 1).take(3).collect();
        if let ([_, signed, after], true) = (&ends[..], is_seal(bytes)) {
            let signature = key.sign(&bytes[..*signed]).to_bytes();
            let digits: String = signature.iter().map(|byte| format!("{byte:02x}")).collect();
            let anew = [
                &bytes[..*signed],
                digits.as_bytes(),
                b"\n",
                &bytes[*after..],
            ]
            .concat();
            let _ = open(&anew, "input", None);
        }
    });
}
