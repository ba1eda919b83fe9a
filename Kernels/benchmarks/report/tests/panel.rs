//! The panel in a real browser: it answers as the program does, for chosen operations and typed sizes. Skipped
//! without a browser.

use report_lib::{choose, content_policy, panel, views, Question, View, PANEL_SCRIPT};
use report_testing::sample;
use std::path::Path;
use std::process::Command;

const BROWSERS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];
const STYLE: &str = "";
/// Rows to ask about: measured, between, outside.
const ASKED: [usize; 6] = [1024, 2048, 4096, 40000, 65536, 100];

/// Chooses the second operation, asks about every number of rows, and writes what the panel says.
fn driver() -> String {
    format!(
        "const field = (name) => document.querySelector(`#choose-form [name=\"${{name}}\"]`);\n\
         const operation = field(\"operation\");\n\
         operation.value = \"softmax_fwd\";\n\
         operation.dispatchEvent(new Event(\"change\"));\n\
         const said = {ASKED:?}.map((rows) => {{\n\
         field(\"rows\").value = rows;\n\
         field(\"rows\").dispatchEvent(new Event(\"input\"));\n\
         return document.getElementById(\"choose-answer\").firstChild.textContent;\n\
         }});\n\
         const list = document.createElement(\"pre\");\n\
         list.textContent = `BEGIN\\n${{said.join(\"\\n\")}}\\nEND`;\n\
         document.body.append(list);\n"
    )
}

/// Up to the first colon: `use ours`, or `cannot tell`.
fn verdict(view: &View, rows: usize) -> String {
    let shape = format!("rows={rows},columns=4096");
    let question = Question {
        op: "softmax_fwd",
        dtype: None,
        shape: &shape,
    };
    let answer = choose(view, &question).unwrap();
    match answer.contender {
        Some(contender) => format!("use {contender}"),
        None => "cannot tell".to_owned(),
    }
}

#[test]
fn the_panel_answers_as_the_program_does() {
    let path = |folder: &str, name: &str| Path::new(folder).join(name);
    let places = ["/usr/bin", "/usr/local/bin"];
    let mut places = places
        .iter()
        .flat_map(|folder| BROWSERS.map(|name| path(folder, name)));
    let Some(browser) = places.find(|path| path.is_file()) else {
        workspace::say!("SKIPPED: no browser");
        return;
    };
    let views = views(sample());
    let (panel, driver) = (panel(&views), driver());
    let page = format!(
        "<!doctype html><html><head><meta charset=\"utf-8\">\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{}\"></head><body>{panel}\
         <script>\n{PANEL_SCRIPT}</script><script>\n{driver}</script></body></html>",
        content_policy(&[PANEL_SCRIPT, &driver], STYLE)
    );
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("page.html");
    std::fs::write(&file, page).unwrap();
    let shown = Command::new(browser)
        .args([
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--dump-dom",
        ])
        .arg(format!(
            "--user-data-dir={}",
            folder.path().join("profile").display()
        ))
        .arg(format!("file://{}", file.display()))
        .env("HOME", folder.path())
        .output()
        .unwrap();
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    let said = shown
        .split_once("BEGIN\n")
        .and_then(|(_, rest)| rest.split_once("\nEND"));
    let (said, _) = said.unwrap_or_else(|| panic!("the panel said nothing: {shown}"));
    let said: Vec<&str> = said
        .lines()
        .map(|line| line.split(':').next().unwrap())
        .collect();
    let expected: Vec<String> = ASKED.iter().map(|rows| verdict(&views[0], *rows)).collect();
    assert_eq!(said, expected);
}
