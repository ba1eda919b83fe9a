//! Published tables: what they say, and that a stale page is rejected.

use record::{ContenderKind, ResultFile, Status};
use report_lib::{packed_for, Collection, Pages};
use report_testing::{file, pair, row, Noise};
use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;

const PLAN: &str = r#"{
  "files": ["run.json.gz"],
  "ours": "ours",
  "loss_min": 0.05,
  "tables": [{
    "name": "norms",
    "title": "norms",
    "columns": [{"title": "Quack, MIT", "show": {"against": "quack"}}],
    "rows": [{"title": "RMSNorm", "op": "rmsnorm_fwd", "suite": "quack"}]
  }]
}"#;

const PAGE: &str = "# Page\n\n<!-- table norms of plan.json -->\nold\n<!-- end of table -->\n\n\
                    <!-- table summary of plan.json -->\n<!-- end of table -->\n\
                    <!-- table losses of plan.json -->\n<!-- end of table -->\nlast\n";

/// Two workloads: twice as fast as Quack on one, 20 % slower on the other; 1 % of noise.
fn measured() -> ResultFile {
    let mut noise = Noise::new(7);
    let mut rows = Vec::new();
    for (size, time_us, scale) in [(1024, 10.0, 0.5), (4096, 40.0, 1.25)] {
        let mut samples = |time_us: f64| -> Vec<f64> {
            let around = |_| time_us * (1.0 + 0.01 * noise.gauss());
            (0..40).map(around).collect()
        };
        let theirs = samples(time_us);
        let baseline = row(
            "rmsnorm_fwd",
            size,
            "quack",
            ContenderKind::Baseline,
            theirs,
        );
        let ours = samples(time_us * scale);
        let mut own = row("rmsnorm_fwd", size, "ours", ContenderKind::Own, ours);
        pair(&mut own, &baseline);
        rows.extend([own, baseline]);
    }
    file("NVIDIA H200", rows)
}

fn folder(file: &ResultFile, plan: &str, page: &str) -> TempDir {
    let folder = TempDir::new().unwrap();
    let text = record::to_json(file).unwrap();
    let path = folder.path().join("run.json.gz");
    std::fs::write(&path, packed_for(&path, text.as_bytes()).unwrap()).unwrap();
    std::fs::write(folder.path().join("plan.json"), plan).unwrap();
    std::fs::write(folder.path().join("page.md"), page).unwrap();
    folder
}

fn page(folder: &Path, options: &[&str]) -> Output {
    let program = std::env::var("REPORT").expect("REPORT names the program");
    Command::new(std::fs::canonicalize(program).expect("the program exists"))
        .current_dir(folder)
        .env_remove("BUILD_WORKING_DIRECTORY")
        .arg("page")
        .args(options)
        .output()
        .expect("the program starts")
}

fn rewritten(file: &ResultFile, plan: &str, page: &str) -> Result<String, String> {
    let folder = folder(file, plan, page);
    let written = Pages::default().rewrite(page, folder.path(), "page.md");
    written.map_err(|error| error.to_string())
}

#[test]
fn cells_are_their_time_over_ours_and_losses_are_told() {
    let text = rewritten(&measured(), PLAN, PAGE).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert!(!lines.contains(&"old"), "{text}");
    assert_eq!(lines.last(), Some(&"last"));
    // 2.0 and 0.8, whose geometric mean is 1.26.
    let cells = lines
        .iter()
        .find(|line| line.starts_with("| RMSNorm |"))
        .unwrap();
    assert_eq!(*cells, "| RMSNorm | 1.26 (0.80 to 2.00) |");
    let family = lines
        .iter()
        .find(|line| line.starts_with("| norms | 2 |"))
        .unwrap();
    assert!(
        family.contains("| 1 | 0 | 1 | 0.80: rmsnorm_fwd bf16 quack/"),
        "{family}"
    );
    let lost =
        "| rmsnorm_fwd bf16 quack/4096x4096 | Quack, MIT | 39.89 | 50.12 | 0.797 [0.793, 0.802] |";
    let fast = "| rmsnorm_fwd bf16 quack/1024x4096 |";
    assert!(text.contains(lost) && !text.contains(fast), "{text}");
}

#[test]
fn a_failure_of_ours_counts_as_a_loss() {
    let mut file = measured();
    let ours = &mut file.rows[0];
    ours.status = Status::Wrong;
    (ours.reason, ours.verified) = (Some("one element is off".to_owned()), false);
    (ours.time, ours.speedup) = (None, None);
    let text = rewritten(&file, PLAN, PAGE).unwrap();
    assert!(text.contains("| 0 | 0 | 2 | we have no time: "), "{text}");
    assert!(text.contains("| RMSNorm | 0.80, 1 of 2 |"), "{text}");
}

#[test]
fn check_names_the_line_that_differs_and_writing_mends_it() {
    let folder = folder(&measured(), PLAN, PAGE);
    let stdout = |output: &Output| String::from_utf8_lossy(&output.stdout).into_owned();
    let stale = page(folder.path(), &["--check", "page.md"]);
    assert_eq!(stale.status.code(), Some(1));
    assert!(
        stdout(&stale).starts_with("page.md:4: differs"),
        "{}",
        stdout(&stale)
    );
    let path = folder.path().join("page.md");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), PAGE);
    assert_eq!(page(folder.path(), &["page.md"]).status.code(), Some(0));
    assert_eq!(
        page(folder.path(), &["--check", "page.md"]).status.code(),
        Some(0)
    );
    let typed = std::fs::read_to_string(&path)
        .unwrap()
        .replace("(0.80 to", "(0.81 to");
    std::fs::write(&path, typed).unwrap();
    assert_eq!(
        page(folder.path(), &["--check", "page.md"]).status.code(),
        Some(1)
    );
}

#[test]
fn a_plan_or_page_with_a_mistake_is_refused_by_name() {
    let file = measured();
    for (from, to, message) in [
        (
            "\"op\": \"rmsnorm_fwd\"",
            "\"op\": \"rmsnorm\"",
            "the line 'RMSNorm' has no rows",
        ),
        (
            "\"against\": \"quack\"",
            "\"against\": \"quark\"",
            "quark has no time in any row",
        ),
        ("\"loss_min\"", "\"loss\"", "is not a plan of tables"),
        ("run.json.gz", "gone.json", "gone.json"),
    ] {
        let error = rewritten(&file, &PLAN.replace(from, to), PAGE).unwrap_err();
        assert!(error.contains(message), "{error}");
    }
    for (page, message) in [
        (
            "<!-- table norms of plan.json -->\n",
            "page.md:1: the table has no end",
        ),
        (
            "a\n<!-- end of table -->\n",
            "page.md:2: '<!-- end of table -->' without",
        ),
        ("<!-- table norms -->\n", "names no table"),
        (
            "<!-- table softmax of plan.json -->\n<!-- end of table -->\n",
            "has no table 'softmax'",
        ),
    ] {
        let error = rewritten(&file, PLAN, page).unwrap_err();
        assert!(error.contains(message), "{error}");
    }
    let shown = "```\n<!-- table x of no.json -->\n<!-- end of table -->\n```\n";
    assert_eq!(
        rewritten(&file, PLAN, shown).unwrap(),
        shown,
        "in a block of code"
    );
    let without = folder(&file, PLAN, "no table\n");
    assert_eq!(page(without.path(), &["page.md"]).status.code(), Some(2));
}

#[test]
fn rows_of_two_builds_are_not_mixed() {
    let mut other = measured();
    other.meta.git.as_mut().unwrap().commit = "another".to_owned();
    let mut both = report_testing::collection(vec![measured(), other]);
    both.runs[1].origin = "other.json".to_owned();
    let folder = folder(&measured(), PLAN, PAGE);
    std::fs::write(folder.path().join("run.json.gz"), both.to_json().unwrap()).unwrap();
    assert!(
        Collection::read(&folder.path().join("run.json.gz")).is_ok(),
        "plain under any name"
    );
    let error = Pages::default()
        .rewrite(PAGE, folder.path(), "page.md")
        .unwrap_err();
    assert!(
        error.to_string().contains("one device, build and protocol"),
        "{error}"
    );
}

#[test]
fn a_table_may_have_files_of_its_own() {
    let mut later = measured();
    later.meta.git.as_mut().unwrap().commit = "another".to_owned();
    later.rows.truncate(2);
    let second = r#"}, {
    "name": "later",
    "title": "later norms",
    "files": ["later.json"],
    "columns": [],
    "rows": [{"title": "RMSNorm", "op": "rmsnorm_fwd", "suite": "quack"}]
  }]"#;
    let plan = PLAN.replace("}]\n}", &format!("{second}\n}}"));
    let page = PAGE.to_owned() + "<!-- table runs of plan.json -->\n<!-- end of table -->\n";
    let folder = folder(&measured(), &plan, &page);
    let text = record::to_json(&later).unwrap();
    std::fs::write(folder.path().join("later.json"), text).unwrap();
    let mut pages = Pages::default();
    let text = pages.rewrite(&page, folder.path(), "page.md").unwrap();
    for line in [
        "| norms | 2 |",
        "| later norms | 1 |",
        "| `run.json.gz` | 4 |",
        "| `later.json` | 2 |",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
}

#[test]
fn a_picture_is_drawn_and_checked_with_the_tables() {
    let linked =
        PAGE.to_owned() + "![map](pictures/h200-rmsnorm_fwd-bf16-winmap.svg) [x](other.svg)\n";
    let folder = folder(&measured(), PLAN, &linked);
    let code = |options: &[&str]| page(folder.path(), options).status.code();
    let picture = folder
        .path()
        .join("pictures/h200-rmsnorm_fwd-bf16-winmap.svg");
    std::fs::create_dir(folder.path().join("pictures")).unwrap();
    assert_eq!(code(&["page.md"]), Some(0));
    let drawn = std::fs::read_to_string(&picture).unwrap();
    assert!(
        drawn.contains(">2.00</text>") && drawn.contains(">0.80</text>"),
        "{drawn}"
    );
    assert_eq!(code(&["--check", "page.md"]), Some(0));
    std::fs::write(&picture, drawn.replace(">0.80</text>", ">0.90</text>")).unwrap();
    assert_eq!(code(&["--check", "page.md"]), Some(1));
    assert_eq!(code(&["page.md"]), Some(0));
    assert_eq!(std::fs::read_to_string(&picture).unwrap(), drawn);
    assert!(!folder.path().join("other.svg").exists(), "not one of ours");
}
