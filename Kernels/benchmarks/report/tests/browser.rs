//! The page in a real browser: it sorts, filters, opens rows, needs no network, and logs no errors.
//! Speaks the DevTools protocol over a pipe, so no driver is needed. Skipped without a browser.

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
        let size =
            json!({"width": width, "height": 1200, "deviceScaleFactor": 1, "mobile": width < 700});
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

#[test]
fn the_page_works_in_a_browser() {
    let Some(browser) = browser() else {
        workspace::say!("SKIPPED: none of {} is installed", BROWSERS.join(", "));
        return;
    };
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("report.html");
    let views = report_lib::views(report_testing::sample());
    std::fs::write(&path, report_lib::to_html(&views)).unwrap();
    // Pictures for people, where the test runner keeps them.
    let outputs = std::env::var_os("TEST_UNDECLARED_OUTPUTS_DIR");
    let pictures = outputs.map_or(folder.path().to_owned(), PathBuf::from);
    let mut page = Page::open(&browser, folder.path());

    page.load(&path, 1440, false);
    let all = count(&mut page);
    assert_eq!(all as usize, report_testing::sample().row_count());

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
    assert_eq!(count(&mut page), 8);
    page.evaluate(
        "(() => { const select = document.getElementById('filter-view'); \
                   select.value = '1'; select.dispatchEvent(new Event('change')); })()",
    );
    assert_eq!(count(&mut page), 4);
    page.evaluate("document.querySelector('#table tbody tr.row').click()");
    let detail = page.evaluate("document.querySelector('tr.detail').textContent");
    assert!(
        detail
            .as_str()
            .unwrap()
            .contains("bench_norms --device cpu"),
        "{detail}"
    );
    let bars = page.evaluate("document.querySelectorAll('tr.detail svg rect').length");
    assert_eq!(bars, 24);
    page.evaluate("document.querySelector('.copy').click()");
    assert!(
        page.evaluate("document.querySelectorAll('figure svg').length")
            .as_u64()
            .unwrap()
            >= 10
    );

    for (width, dark) in [(390, false), (390, true), (1440, false), (1440, true)] {
        page.load(&path, width, dark);
        page.evaluate("document.querySelector('#table tbody tr.row').click()");
        let overflow = page.evaluate("document.documentElement.scrollWidth - window.innerWidth");
        assert!(
            overflow.as_i64().unwrap() <= 0,
            "{width} px: the page is {overflow} px too wide"
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
