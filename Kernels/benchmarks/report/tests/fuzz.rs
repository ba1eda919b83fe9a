//! Result files, collections, claims, plans of tables, and FlashInfer-Bench's problems, workloads and
//! traces, of random bytes: an error or a report, never a crash.

use report_lib::{claims_markdown, compare, history, import, merge, plots, read_claims, summarize};
use report_lib::{
    to_github_action_benchmark, to_html, to_nvbench, views, Collection, CompareOptions,
};

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
        "\"value\": 0",
        "\n",
    ];
    let corpus = fuzz::corpus(CORPUS, "import-");
    let definition = text(&corpus[0]);
    fuzz::run("problems, workloads, traces", &corpus, &words, |bytes| {
        let _ = import(&[("input".to_owned(), text(bytes))]);
        let known = ("known".to_owned(), definition.clone());
        let _ = import(&[known, ("input".to_owned(), text(bytes))]);
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
