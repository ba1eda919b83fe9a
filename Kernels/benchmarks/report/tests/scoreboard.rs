//! The scoreboard: right numbers, right reasons, first in the summary, harmless on a terminal.

use record::{Clocks, ContenderKind, Row};
use report_lib::{
    losses, scoreboard, scoreboard_text, summarize, trust, views, Score, Trust, View,
};
use report_testing::{collection, file, pair, row, sample, Noise};

fn view(rows: Vec<Row>) -> View {
    views(collection(vec![file("NVIDIA H200", rows)])).remove(0)
}

/// Ours and baselines on one workload; each takes its factor of 100 us, with a noise of 0.3 %.
fn race(size: usize, factors: &[(&str, ContenderKind, f64)]) -> Vec<Row> {
    let mut noise = Noise::new(size as u64);
    let mut rows: Vec<Row> = factors
        .iter()
        .map(|(name, kind, factor)| {
            let samples = (0..60).map(|_| 100.0 * factor * (1.0 + 0.003 * noise.gauss()));
            row("rmsnorm_fwd", size, name, *kind, samples.collect())
        })
        .collect();
    let baseline = rows[1].clone();
    pair(&mut rows[0], &baseline);
    rows
}

const OURS: (&str, ContenderKind, f64) = ("ours", ContenderKind::Own, 1.0);

fn near(score: Option<&Score>, ratio: f64) -> bool {
    let mean = score.unwrap().mean;
    (mean.ratio / ratio - 1.0).abs() < 0.004 && mean.low < mean.ratio && mean.ratio < mean.high
}

#[test]
fn every_contender_is_scored_against_the_best_other() {
    let quick = ("quick", ContenderKind::Baseline, 0.8);
    let slow = ("slow", ContenderKind::Baseline, 1.5);
    let mut rows = race(1024, &[OURS, slow, quick]);
    rows.extend(race(
        2048,
        &[OURS, slow, ("quick", ContenderKind::Baseline, 1.25)],
    ));
    let board = scoreboard(&view(rows));
    let [block] = &board.blocks[..] else {
        panic!("one block")
    };
    assert_eq!(block.contenders, ["ours", "quick", "slow"]);
    let line = &block.lines[0];
    let [ours, quick, slow] = [0, 1, 2].map(|at| line.best[at].as_ref());
    // 0.8 and 1.25 cancel; the best other of slow is quick once and ours once.
    assert!(near(ours, 1.0) && near(quick, 1.0), "{ours:?} {quick:?}");
    assert!(near(slow, (0.8f64 / 1.5 / 1.5).sqrt()), "{slow:?}");
    assert_eq!(ours.unwrap().counts(), "1/0/1");
    assert_eq!(quick.unwrap().counts(), "1/0/1");
    assert_eq!(slow.unwrap().counts(), "0/0/2");
    // Against slow, everybody wins; nobody is scored against itself.
    let against = &line.against[2];
    assert!(near(against[0].as_ref(), 1.5) && against[2].is_none());
    assert_eq!(against[1].as_ref().unwrap().counts(), "2/0/0");
    assert_eq!(board.ours.unwrap().1, ours.unwrap().clone());
}

#[test]
fn losses_come_worst_first_with_what_the_record_tells() {
    let other = |factor| ("quick", ContenderKind::Baseline, factor);
    let mut rows = race(1024, &[OURS, other(0.9)]);
    rows.extend(race(2048, &[OURS, other(0.7)]));
    rows.extend(race(4096, &[OURS, other(0.95)]));
    rows.extend(race(8192, &[OURS, other(1.2)]));
    // The third loses because its clock is lower, the first waits for latencies.
    let clock = |mhz| {
        Some(Clocks {
            median_mhz: Some(mhz),
            ..Clocks::default()
        })
    };
    (rows[4].clocks, rows[5].clocks) = (clock(1800.0), clock(1900.0));
    for row in &mut rows[..2] {
        row.metrics.roof_share = Some(0.01);
    }
    rows[2].facts.insert("kernel".into(), "narrow".into());
    rows[3].facts.insert("kernel".into(), "broad".into());
    let view = view(rows);
    let lost = losses(&view);
    let names: Vec<&str> = lost.iter().map(|loss| &*loss.row.workload.name).collect();
    assert_eq!(names, ["2048x4096", "1024x4096", "4096x4096"]);
    let reason = |at: usize| &lost[at].reason;
    assert!(
        reason(0).contains("ours kernel narrow, theirs kernel broad"),
        "{}",
        reason(0)
    );
    assert!(reason(1).starts_with("latency: "), "{}", reason(1));
    assert!(reason(2).starts_with("lower clock: 1.0"), "{}", reason(2));
}

#[test]
fn a_contender_of_ours_without_a_time_loses_to_whoever_has_one() {
    let mut rows = race(1024, &[OURS, ("quick", ContenderKind::Baseline, 1.2)]);
    rows[0] = report_testing::failed_row(
        "rmsnorm_fwd",
        1024,
        "ours",
        record::Status::Wrong,
        "off by one",
    );
    let view = view(rows);
    let lost = losses(&view);
    assert_eq!(lost.len(), 1);
    assert_eq!(lost[0].reason, "wrong: off by one");
}

#[test]
fn what_a_file_does_not_say_is_said_to_be_missing() {
    let mut rows = race(1024, &[OURS, ("quick", ContenderKind::Baseline, 1.2)]);
    let facts = |rows: Vec<Row>| {
        let facts = trust(&view(rows)).into_iter();
        facts
            .map(|fact| (fact.name, (fact.text, fact.trust)))
            .collect::<std::collections::BTreeMap<_, _>>()
    };
    let without = facts(rows.clone());
    assert_eq!(
        without["A/A controls"],
        ("not recorded".to_owned(), Trust::Unknown)
    );
    assert!(without["outputs"].0.contains("checked rounds not recorded"));
    assert_eq!(
        without["clocks"],
        ("not locked, rates not recorded".to_owned(), Trust::Doubtful)
    );
    let mut control = rows[0].clone();
    control.contender.name = "ours (again)".into();
    control.contender.kind = ContenderKind::Control;
    let ours = rows[0].clone();
    pair(&mut control, &ours);
    rows.push(control);
    rows[0].checked_rounds = Some(3);
    let with = facts(rows);
    assert_eq!(
        with["A/A controls"],
        ("1 of 1 the same, 0 different".to_owned(), Trust::Good)
    );
    assert!(with["outputs"].0.contains("3 timed rounds checked again"));
}

#[test]
fn a_summary_begins_with_the_scoreboard() {
    let text = summarize(&views(sample()));
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[..3], ["# Head-to-Head results", "", "## NVIDIA H200"]);
    assert!(
        lines[4].starts_with("A/A controls: not recorded · ⚠ outputs: "),
        "{}",
        lines[4]
    );
    assert!(lines[6].starts_with("**ours: 1.0"), "{}", lines[6]);
    assert_eq!(lines[8], "| op | dtype | workloads | ours | quack |");
    assert!(
        lines[10].starts_with("| rmsnorm_fwd | bf16 | 4 | "),
        "{}",
        lines[10]
    );
    assert!(lines[10].contains(" 2/1/1 |"), "{}", lines[10]);
}

#[test]
fn a_terminal_gets_colours_only_if_it_is_one() {
    let views = views(sample());
    let plain = scoreboard_text(&views[0], false);
    assert!(
        !plain.contains('\u{1b}') && plain.contains("Where we lose, worst 2 of 2:"),
        "{plain}"
    );
    let coloured = scoreboard_text(&views[0], true);
    assert!(coloured.contains("\u{1b}[38;5;75m"));
    let mut bare = String::new();
    for part in coloured.split('\u{1b}') {
        bare += part
            .split_once('m')
            .filter(|(code, _)| code.starts_with('['))
            .map_or(part, |(_, rest)| rest);
    }
    assert_eq!(bare, plain);
}
