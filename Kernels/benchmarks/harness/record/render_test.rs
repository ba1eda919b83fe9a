//! What people see: table, Markdown, CSV.

use crate::test_samples::{failed_row, file, meta, ok_row};
use crate::*;
use stats::Verdict;

fn table(width: Option<usize>, color: bool) -> String {
    to_table(&file(DeviceKind::Cuda), TableStyle { width, color })
}

#[test]
fn tables_fit_the_terminal_and_align() {
    for width in [80, 100, 160] {
        let text = table(Some(width), false);
        let rows: Vec<&str> = text
            .lines()
            .take_while(|line| !line.is_empty())
            .skip(1)
            .collect();
        for line in &rows {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
        let header: Vec<char> = rows[0].chars().collect();
        let verdict_at = rows[0].find("verdict").unwrap();
        for line in &rows[1..] {
            let gap: String = line.chars().skip(verdict_at - 2).take(2).collect();
            assert_eq!(gap, "  ", "{width}: {line} under {header:?}");
        }
        assert!(!text.contains('\x1b'));
    }
    assert!(table(Some(80), false).contains("speed-up"));
    assert!(!table(Some(80), false).contains("p95 us"));
    assert!(table(Some(160), false).contains("p95 us"));
}

#[test]
fn colours_change_nothing_but_colours() {
    let mut plain = String::new();
    let mut escape = false;
    for character in table(Some(160), true).chars() {
        match (escape, character) {
            (false, '\x1b') => escape = true,
            (true, 'm') => escape = false,
            (false, _) => plain.push(character),
            (true, _) => {}
        }
    }
    assert_eq!(plain, table(Some(160), false));
    assert!(table(Some(160), true).contains("\x1b[31mslower"));
}

#[test]
fn piped_lines_stand_alone() {
    let text = table(None, false);
    assert_eq!(
        text.lines()
            .filter(|line| line.starts_with("quack/32768x256 "))
            .count(),
        3
    );
}

#[test]
fn missing_numbers_are_never_zero() {
    let file = ResultFile {
        meta: meta(DeviceKind::Cpu),
        rows: vec![failed_row("w", "c", Status::Error, "no memory")],
    };
    let text = to_table(&file, TableStyle::PLAIN);
    let line = text
        .lines()
        .find(|line| line.starts_with("quack/w"))
        .unwrap();
    assert!(!line.contains('0'), "{line}");
    assert!(
        text.contains("device: cpu") && text.contains("error: rmsnorm_fwd quack/w c: no memory")
    );
    let csv = parse_csv(&to_csv(&file));
    let median = csv[0].iter().position(|name| name == "median_us").unwrap();
    assert_eq!(csv[1][median], "");
}

#[test]
fn groups_count_losses_as_plainly_as_wins() {
    let groups = groups(&file(DeviceKind::Cuda));
    assert_eq!(groups.len(), 1);
    let group = &groups[0];
    assert_eq!(
        (group.contender.as_str(), group.baseline.as_str()),
        ("ours", "quack")
    );
    assert_eq!(group.verdict_count(Verdict::Faster), 1);
    assert_eq!(group.verdict_count(Verdict::Slower), 1);
    assert_eq!(group.verdict_count(Verdict::Same), 1);
    assert_eq!(group.worst.as_ref().unwrap().0, "32768x4096");
    let mean = group.geomean.unwrap();
    let expected = (1.0f64 / (0.8 * 1.05 * 1.001)).cbrt();
    assert!((mean.ratio / expected - 1.0).abs() < 1e-4 && mean.count == 3);
    let markdown = to_markdown(&file(DeviceKind::Cuda));
    assert!(markdown.contains("## Losses: 1 row"), "{markdown}");
    assert!(markdown.contains("| 0.952 on 32768x4096 |"));
}

#[test]
fn a_group_says_how_many_workloads_it_left_out() {
    let mut file = file(DeviceKind::Cuda);
    file.rows
        .push(failed_row("1x1", "ours", Status::Wrong, "off by one"));
    let group = &groups(&file)[0];
    assert_eq!(group.workloads(), 4);
    assert_eq!(group.unpaired[&Status::Wrong], 1);
    assert!(to_table(&file, TableStyle::PLAIN).contains("over 3 of 4 workloads"));
    assert!(to_markdown(&file).contains("| 3 of 4 |"));
}

#[test]
fn markdown_tables_stay_whole() {
    let markdown = to_markdown(&file(DeviceKind::Cuda));
    let mut columns = None;
    for line in markdown.lines() {
        if !line.starts_with('|') {
            columns = None;
            continue;
        }
        let count = line.replace("\\|", "").matches('|').count();
        assert_eq!(*columns.get_or_insert(count), count, "{line}");
    }
    assert!(markdown.contains("illegal address in kernel \\| worker restarted"));
}

#[test]
fn unverified_and_partial_results_say_so() {
    let mut file = file(DeviceKind::Cuda);
    file.meta.protocol.verify = false;
    file.meta.complete = false;
    file.rows.iter_mut().for_each(|row| row.verified = false);
    assert!(to_table(&file, TableStyle::PLAIN).contains("faster (unverified)"));
    let markdown = to_markdown(&file);
    assert!(markdown.contains("slower (unverified)") && markdown.contains("**Partial"));
}

/// Splits CSV by the rules of RFC 4180.
fn parse_csv(text: &str) -> Vec<Vec<String>> {
    let (mut rows, mut row, mut field, mut quoted) = (Vec::new(), Vec::new(), String::new(), false);
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match (character, quoted) {
            ('"', true) if characters.peek() == Some(&'"') => {
                characters.next();
                field.push('"');
            }
            ('"', _) => quoted = !quoted,
            (',', false) => row.push(std::mem::take(&mut field)),
            ('\r', false) => {}
            ('\n', false) => {
                row.push(std::mem::take(&mut field));
                rows.push(std::mem::take(&mut row));
            }
            (other, _) => field.push(other),
        }
    }
    rows
}

#[test]
fn csv_survives_its_worst_cells() {
    let file = file(DeviceKind::Cuda);
    let rows = parse_csv(&to_csv(&file));
    assert_eq!(rows.len(), file.rows.len() + 1);
    assert!(rows.iter().all(|row| row.len() == rows[0].len()));
    let reason = rows[0].iter().position(|name| name == "reason").unwrap();
    for (line, row) in rows[1..].iter().zip(&file.rows) {
        assert_eq!(line[reason], row.reason.clone().unwrap_or_default());
    }
}

#[test]
fn csv_and_json_name_what_a_row_loaded() {
    let file = file(DeviceKind::Cuda);
    let rows = parse_csv(&to_csv(&file));
    let column = rows[0].iter().position(|name| name == "libraries").unwrap();
    let row = file
        .rows
        .iter()
        .position(|row| row.contender.name == "plain");
    let (artifact, own) = ("cd".repeat(32), "ef".repeat(32));
    assert_eq!(
        rows[row.unwrap() + 1][column],
        format!(
            "cudnn 9.27.0 from lock: nvidia-cudnn 9.27.0.42 sha256 {artifact}; \
             nvrtc 9.27.0 from override: libnvrtc.so.9 sha256 {own}"
        )
    );
    assert_eq!(rows[1][column], "");
    let json = to_json(&file).unwrap();
    assert_eq!(json.matches("\"source\":\"override\"").count(), 1, "{json}");
}

#[test]
fn ten_thousand_rows_are_quick() {
    let rows = (0..10_000)
        .map(|index| ok_row(&format!("{index}x64"), "ours", 1.0))
        .collect();
    let file = ResultFile {
        meta: meta(DeviceKind::Cuda),
        rows,
    };
    let start = std::time::Instant::now();
    let text = to_json(&file).unwrap();
    let read = from_json(&text, "text").unwrap();
    let shown = to_markdown(&read).len() + to_csv(&read).len();
    let seconds = start.elapsed().as_secs_f64();
    assert!(shown > 1_000_000);
    // Generous, for a loaded machine and a build without the optimiser.
    assert!(seconds < 20.0, "{seconds} s");
}

#[test]
fn a_warning_of_many_rows_is_said_once() {
    let mut file = file(DeviceKind::Cuda);
    for row in &mut file.rows[..3] {
        row.warnings = vec![
            "the clock is held down: sw_power_cap".into(),
            "clocks are not locked".into(),
        ];
    }
    let text = to_table(&file, TableStyle::PLAIN);
    assert!(
        text.contains("warning: 3 rows: the clock is held down"),
        "{text}"
    );
    assert_eq!(text.matches("clocks are not locked").count(), 1);
}

#[test]
fn slow_devices_get_small_units() {
    let mut file = file(DeviceKind::Cpu);
    assert!(to_table(&file, TableStyle::PLAIN).contains("TB/s"));
    for row in &mut file.rows {
        row.metrics.tbps = row.metrics.tbps.map(|rate| rate / 1e4);
        row.metrics.tflops = row.metrics.tflops.map(|rate| rate / 1e4);
    }
    for text in [to_table(&file, TableStyle::PLAIN), to_markdown(&file)] {
        assert!(text.contains("GB/s") && text.contains("GFLOP/s"), "{text}");
        assert!(text.contains("0.4995"), "{text}");
    }
}
