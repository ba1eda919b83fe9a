//! The page in a real browser: it answers on the first screen, sorts, filters, changes the baseline, opens rows, works
//! with the keyboard, needs no network, and logs no errors.
//! Speaks the DevTools protocol over a pipe, so no driver is needed. Skipped without a browser.

use record::ContenderKind;
use report_lib::Collection;
use report_testing::{pair, row, Noise};
use serde_json::{json, Value};
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

const BROWSERS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];

fn browser() -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    let mut folders: Vec<PathBuf> = std::env::split_paths(&folders).collect();
    // Tests see a short PATH.
    folders.extend(["/usr/bin", "/usr/local/bin"].map(PathBuf::from));
    let places = folders
        .iter()
        .flat_map(|folder| BROWSERS.map(|name| folder.join(name)));
    places.into_iter().find(|path| path.is_file())
}

struct Page {
    child: Child,
    input: File,
    output: File,
    buffer: Vec<u8>,
    next_id: u64,
    session: Option<String>,
    /// Events received while waiting for an answer.
    events: Vec<Value>,
}

impl Page {
    /// Starts the browser with its protocol on two named pipes and opens a blank page.
    fn open(browser: &Path, folder: &Path) -> Page {
        let (to, from) = (folder.join("to"), folder.join("from"));
        let made = Command::new("mkfifo").args([&to, &from]).status().unwrap();
        assert!(made.success());
        let profile = folder.join("profile");
        let child = Command::new("sh")
            .arg("-c")
            .arg("exec \"$0\" \"$@\" 3<\"$TO\" 4>\"$FROM\"")
            .arg(browser)
            .args([
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--no-first-run",
            ])
            .args([
                "--disable-dev-shm-usage",
                "--remote-debugging-pipe",
                "--mute-audio",
            ])
            .args([
                "--disable-background-networking",
                "--disable-component-update",
            ])
            .arg(format!("--user-data-dir={}", profile.display()))
            .env("TO", &to)
            .env("FROM", &from)
            .env("HOME", folder)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let input = File::options().write(true).open(to).unwrap();
        let output = File::open(from).unwrap();
        let mut page = Page {
            child,
            input,
            output,
            buffer: Vec::new(),
            next_id: 0,
            session: None,
            events: Vec::new(),
        };
        let target = page.call("Target.createTarget", json!({"url": "about:blank"}));
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let attached = page.call("Target.attachToTarget", attach);
        page.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log", "Network"] {
            page.call(&format!("{domain}.enable"), json!({}));
        }
        page
    }

    fn receive(&mut self) -> Value {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == 0) {
                let message: Vec<u8> = self.buffer.drain(..=end).collect();
                return serde_json::from_slice(&message[..end]).unwrap();
            }
            let mut chunk = [0; 65536];
            let count = self.output.read(&mut chunk).unwrap();
            assert!(count > 0, "the browser is gone");
            self.buffer.extend(&chunk[..count]);
        }
    }

    fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.next_id += 1;
        let id = self.next_id;
        let mut message = json!({"id": id, "method": method, "params": parameters});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        self.input
            .write_all(format!("{message}\0").as_bytes())
            .unwrap();
        loop {
            let mut message = self.receive();
            if message["id"] == id {
                assert!(message["error"].is_null(), "{method}: {}", message["error"]);
                return message["result"].take();
            }
            self.events.push(message);
        }
    }

    fn evaluate(&mut self, expression: &str) -> Value {
        let parameters =
            json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let mut result = self.call("Runtime.evaluate", parameters);
        let thrown = &result["exceptionDetails"];
        assert!(thrown.is_null(), "{expression}: {thrown}");
        result["result"]["value"].take()
    }

    fn load(&mut self, page: &Path, width: u32, dark: bool) {
        let height = match width {
            ..700 => 844,
            700..2000 => 900,
            _ => 1440,
        };
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 700});
        self.call("Emulation.setDeviceMetricsOverride", size);
        let scheme =
            json!({"name": "prefers-color-scheme", "value": if dark { "dark" } else { "light" }});
        self.call("Emulation.setEmulatedMedia", json!({"features": [scheme]}));
        self.call(
            "Page.navigate",
            json!({"url": format!("file://{}", page.display())}),
        );
        self.evaluate("new Promise(done => { const look = () => document.readyState === 'complete' \
                       && document.querySelector('#table tbody tr') ? done(1) : setTimeout(look, 20); look(); })");
    }

    /// A picture of the whole page.
    fn screenshot(&mut self, path: &Path) {
        let parameters = json!({"format": "png", "captureBeyondViewport": true});
        let picture = self.call("Page.captureScreenshot", parameters);
        let text = picture["data"].as_str().unwrap();
        std::fs::write(path, base64(text)).unwrap();
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn base64(text: &str) -> Vec<u8> {
    let value = |byte: u8| match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let mut bytes = Vec::new();
    for chunk in text.trim_end_matches('=').as_bytes().chunks(4) {
        let bits = chunk
            .iter()
            .fold(0u32, |bits, byte| bits << 6 | u32::from(value(*byte)));
        let bits = bits << (6 * (4 - chunk.len()));
        bytes.extend(&bits.to_be_bytes()[1..chunk.len()]);
    }
    bytes
}

/// Speed-ups as the table shows them, top to bottom.
const SPEEDUPS: &str = "[...document.querySelectorAll('#table tbody tr.row')].map(row => \
    row.children[[...document.querySelectorAll('#table thead th')].findIndex(head => \
    head.textContent.startsWith('speed-up'))].textContent)";

fn click_title(title: &str) -> String {
    format!(
        "[...document.querySelectorAll('#table thead th')].find(head => \
         head.textContent.startsWith('{title}')).click()"
    )
}

fn count(page: &mut Page) -> u64 {
    page.evaluate("document.querySelectorAll('#table tbody tr.row').length")
        .as_u64()
        .unwrap()
}

/// The usual sample, in which one more operation has the contenders of the first.
fn sample() -> Collection {
    let mut sample = report_testing::sample();
    let mut noise = Noise::new(3);
    for size in [1024, 4096] {
        let mut samples = |time_us: f64| -> Vec<f64> {
            (0..60)
                .map(|_| time_us * (1.0 + 0.004 * noise.gauss()))
                .collect()
        };
        let baseline = row(
            "layernorm_fwd",
            size,
            "quack",
            ContenderKind::Baseline,
            samples(20.0),
        );
        let mut own = row(
            "layernorm_fwd",
            size,
            "ours",
            ContenderKind::Own,
            samples(14.0),
        );
        pair(&mut own, &baseline);
        sample.runs[0].file.rows.extend([own, baseline]);
    }
    sample
}

fn text(page: &mut Page, expression: &str) -> String {
    let value = page.evaluate(expression);
    value.as_str().unwrap_or_default().to_owned()
}

/// The first view's scores of its first line, as the page shows them.
const SCORES: &str = "[...document.querySelectorAll('.scores tbody tr')[0].querySelectorAll('td')]\
    .map(cell => cell.textContent).join(' | ')";

fn the_scoreboard_answers(page: &mut Page) {
    // Without scrolling: who wins, by how much, where we lose.
    for part in [".trust", ".verdict", ".scores tbody tr", ".losses li"] {
        let bottom = page.evaluate(&format!(
            "document.querySelector('{part}').getBoundingClientRect().bottom"
        ));
        assert!(bottom.as_f64().unwrap() < 900.0, "{part} ends at {bottom}");
    }
    let best = text(page, SCORES);
    let choose = |name: &str| {
        format!(
            "(() => {{ const select = document.getElementById('baseline-0'); \
             select.value = '{name}'; select.dispatchEvent(new Event('change')); }})()"
        )
    };
    page.evaluate(&choose("ours"));
    let against = text(page, SCORES);
    let (ours, quack) = against.split_once(" | ").unwrap();
    assert_eq!(ours, "baseline");
    assert!(
        quack.starts_with("0.9") && quack.ends_with("1/1/2"),
        "{quack}"
    );
    page.evaluate(&choose(""));
    assert_eq!(text(page, SCORES), best);

    let names = "[...document.querySelectorAll('.scores')[0].querySelectorAll('tbody th a')]\
        .map(link => link.textContent).join(' ')";
    let column =
        "parseFloat(document.querySelectorAll('.scores')[0].querySelectorAll('tbody tr')[0]\
        .querySelector('td').textContent)";
    page.evaluate("document.querySelector('.scores .sort').click()");
    let lowest = page.evaluate(column).as_f64().unwrap();
    let ascending = text(page, names);
    page.evaluate("document.querySelector('.scores .sort').click()");
    assert!(lowest < page.evaluate(column).as_f64().unwrap());
    assert_ne!(ascending, text(page, names));

    // A score leads to its operation.
    page.evaluate("document.querySelector('.scores tbody th a').click()");
    page.evaluate("new Promise(done => setTimeout(done, 50))");
    let open = page.evaluate("document.querySelectorAll('details.operation[open]').length");
    assert_eq!(open, 1);
}

fn the_table_sorts_and_filters(page: &mut Page) {
    let all = count(page);
    assert_eq!(all as usize, sample().row_count());

    page.evaluate(&click_title("speed-up"));
    let shown = page.evaluate(SPEEDUPS);
    let ratios: Vec<f64> = shown
        .as_array()
        .unwrap()
        .iter()
        .map_while(|text| text.as_str()?.parse().ok())
        .collect();
    assert!(ratios.len() >= 8 && ratios.is_sorted(), "{shown}");
    page.evaluate(&click_title("speed-up"));
    let first = page.evaluate(SPEEDUPS)[0].clone();
    assert_eq!(
        first.as_str().unwrap().parse::<f64>().unwrap(),
        *ratios.last().unwrap()
    );

    page.evaluate(
        "(() => { const input = document.querySelector('#filters input'); \
                   input.value = 'softmax ours'; input.dispatchEvent(new Event('input')); })()",
    );
    assert_eq!(count(page), 8);
    page.evaluate(
        "(() => { const select = document.getElementById('filter-view'); \
                   select.value = '1'; select.dispatchEvent(new Event('change')); })()",
    );
    assert_eq!(count(page), 4);
    page.evaluate("document.querySelector('#table tbody tr.row').click()");
    let detail = text(page, "document.querySelector('tr.detail').textContent");
    assert!(detail.contains("bench_norms --device cpu"), "{detail}");
    let bars = page.evaluate("document.querySelectorAll('tr.detail svg rect').length");
    assert_eq!(bars, 24);
    page.evaluate("document.querySelector('.copy').click()");
    assert!(
        page.evaluate("document.querySelectorAll('figure .tiles svg').length")
            .as_u64()
            .unwrap()
            >= 16
    );
}

fn the_keyboard_is_enough(page: &mut Page) {
    let press = |page: &mut Page, key: &str| {
        for kind in ["keyDown", "keyUp"] {
            let text = if key == "Enter" { "\r" } else { "" };
            page.call(
                "Input.dispatchKeyEvent",
                json!({"type": kind, "key": key, "code": key, "text": text,
                       "windowsVirtualKeyCode": if key == "Enter" { 13 } else { 0 }}),
            );
        }
    };
    // A mark's samples, with the arrow keys.
    page.evaluate("document.querySelector('details.operation[open] .tiles svg').focus()");
    press(page, "ArrowRight");
    assert_eq!(
        page.evaluate("document.getElementById('tip').hidden"),
        false
    );
    let first = text(page, "document.getElementById('tip').textContent");
    let bars = page.evaluate("document.querySelectorAll('#tip rect').length");
    assert_eq!(bars, 24, "{first}");
    press(page, "ArrowRight");
    assert_ne!(
        text(page, "document.getElementById('tip').textContent"),
        first
    );
    press(page, "Escape");
    assert_eq!(page.evaluate("document.getElementById('tip').hidden"), true);
    // A score's column is a button, a row of the table opens with Enter.
    page.evaluate("document.querySelector('.scores .sort').focus()");
    press(page, "Enter");
    let sorted = text(
        page,
        "document.querySelector('.scores [aria-sort]').textContent",
    );
    assert_eq!(sorted, "ours");
    let details = "document.querySelectorAll('tr.detail').length";
    let before = page.evaluate(details).as_u64().unwrap();
    page.evaluate("document.querySelectorAll('#table tbody tr.row')[2].focus()");
    press(page, "Enter");
    assert_eq!(page.evaluate(details).as_u64().unwrap(), before + 1);
}

#[test]
fn the_page_works_in_a_browser() {
    let Some(browser) = browser() else {
        workspace::say!("SKIPPED: none of {} is installed", BROWSERS.join(", "));
        return;
    };
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("report.html");
    let views = report_lib::views(sample());
    std::fs::write(&path, report_lib::to_html(&views)).unwrap();
    // Pictures for people, where the test runner keeps them.
    let outputs = std::env::var_os("TEST_UNDECLARED_OUTPUTS_DIR");
    let pictures = outputs.map_or(folder.path().to_owned(), PathBuf::from);
    let mut page = Page::open(&browser, folder.path());

    page.load(&path, 1440, false);
    the_scoreboard_answers(&mut page);
    the_table_sorts_and_filters(&mut page);
    the_keyboard_is_enough(&mut page);

    for (width, dark) in [
        (390, false),
        (390, true),
        (1440, false),
        (1440, true),
        (2560, false),
        (2560, true),
    ] {
        page.load(&path, width, dark);
        page.evaluate("document.querySelector('#table tbody tr.row').click()");
        page.evaluate(
            "document.querySelectorAll('details').forEach(each => { each.open = true; })",
        );
        let overflow = page.evaluate("document.documentElement.scrollWidth - window.innerWidth");
        assert!(
            overflow.as_i64().unwrap() <= 0,
            "{width} px: the page is {overflow} px too wide"
        );
        page.evaluate(
            "document.querySelectorAll('details').forEach(each => { each.open = false; })",
        );
        let background = page.evaluate("getComputedStyle(document.body).backgroundColor");
        assert_eq!(background == "rgb(16, 21, 27)", dark, "{background}");
        let scheme = if dark { "dark" } else { "light" };
        page.screenshot(&pictures.join(format!("page-{width}-{scheme}.png")));
    }

    for event in &page.events {
        let parameters = &event["params"];
        match event["method"].as_str().unwrap_or_default() {
            "Network.requestWillBeSent" => {
                let url = parameters["request"]["url"].as_str().unwrap();
                assert!(
                    url.starts_with("file://") || url.starts_with("data:"),
                    "asked for {url}"
                );
            }
            "Runtime.exceptionThrown" => panic!("{parameters}"),
            "Log.entryAdded" => assert_ne!(parameters["entry"]["level"], "error", "{parameters}"),
            "Runtime.consoleAPICalled" => assert_ne!(parameters["type"], "error", "{parameters}"),
            _ => {}
        }
    }
}
