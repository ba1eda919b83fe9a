//! Two releases of a library in one race: the summary says what the newer one changed.

use record::{ContenderKind, Row};
use report_lib::{compare, summarize, views, CompareOptions};
use report_testing::{collection, file, row, Noise};

/// A release on a few workloads, by how much of the time of the first it takes.
fn release(name: &str, version: &str, share: f64, noise: &mut Noise) -> Vec<Row> {
    let rows = [1024, 4096, 16384].map(|size| {
        let samples = (0..60).map(|_| size as f64 * share * (1.0 + 0.002 * noise.gauss()));
        let kind = ContenderKind::Baseline;
        let mut row = row("softmax_fwd", size, name, kind, samples.collect());
        row.contender.version = version.to_owned();
        row
    });
    rows.to_vec()
}

#[test]
fn a_summary_has_the_steps_from_release_to_release() {
    let mut noise = Noise::new(3);
    let mut rows = release("quack", "0.6.10+r2", 0.9, &mut noise);
    rows.extend(release("quack@0.6.9", "0.6.9+r2", 1.0, &mut noise));
    rows.extend(release("quack@0.6.4", "0.6.4+r2", 1.0, &mut noise));
    rows.extend(release("liger", "0.8.5", 1.2, &mut noise));
    let text = summarize(&views(collection(vec![file("H200", rows)])));
    let steps: Vec<&str> = text
        .lines()
        .skip_while(|line| !line.starts_with("### Release by release"))
        .filter(|line| line.starts_with("| quack"))
        .collect();
    let [same, faster] = &steps[..] else {
        panic!("{steps:?} in {text}");
    };
    assert!(
        same.starts_with("| quack | 0.6.4 | 0.6.9 | softmax_fwd"),
        "{same}"
    );
    assert!(same.ends_with("| 3 | 0 / 3 / 0 / 0 |"), "{same}");
    assert!(faster.starts_with("| quack | 0.6.9 | 0.6.10 |"), "{faster}");
    assert!(faster.contains("| 1.11"), "{faster}");
    assert!(faster.ends_with("| 3 | 3 / 0 / 0 / 0 |"), "{faster}");
    assert!(!text.contains("| liger | 0.8.5"), "{text}");
}

#[test]
fn without_releases_there_is_no_table() {
    let rows = release("quack", "0.6.5+r2", 1.0, &mut Noise::new(3));
    let text = summarize(&views(collection(vec![file("H200", rows)])));
    assert!(!text.contains("Release by release"), "{text}");
}

#[test]
fn a_comparison_takes_releases_for_different_contenders() {
    let run = |name: &str, version: &str, share: f64| {
        let mut noise = Noise::new(3);
        let mut rows = release("liger", "0.8.5", 1.2, &mut noise);
        rows.extend(release(name, version, share, &mut noise));
        collection(vec![file("H200", rows)])
    };
    let base = run("quack", "0.6.5+r2", 1.0);
    let new = run("quack@0.6.4", "0.6.4+r2", 2.0);
    let options = CompareOptions {
        threshold: 0.02,
        across_devices: false,
    };
    let found = compare(&base, &new, &options).unwrap();
    let changed = found.changes.iter().map(|change| &*change.key.contender);
    assert!(changed.clone().all(|name| name == "liger"));
    assert_eq!(changed.count(), 3);
    assert!(found.missing.iter().all(|key| key.contender == "quack"));
    assert!(found.added.iter().all(|key| key.contender == "quack@0.6.4"));
    assert_eq!((found.missing.len(), found.added.len()), (3, 3));
}
