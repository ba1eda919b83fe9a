//! What formatters and compilers do not check, one rule per function: text in, findings out.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

/// Maximum line width of source and prose, in characters; links and pins may be longer.
const WIDTH: usize = 120;

/// Markers of unfinished work; split up, so that this file does not contain them.
const MARKERS: &[&str] = &[
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("dbg", "!("),
];

/// Hosts of package registries: a machine's own clients know theirs. Split up for the same reason.
const HOSTS: &[&str] = &[
    concat!("pypi", ".org"),
    concat!("files.python", "hosted.org"),
    concat!("registry.npm", "js.org"),
    concat!("index.crates", ".io"),
    concat!("static.crates", ".io"),
    concat!("deb.debian", ".org"),
];

/// Folders that exist only on somebody's machine.
const MACHINE_FOLDERS: &[&str] = &[
    concat!("/ro", "ot/"),
    concat!("/ho", "me/"),
    concat!("/wo", "rk/"),
    concat!("/Us", "ers/"),
];

/// Where inline assembly is allowed: our shelf, and what libraries' own interfaces need.
const ASSEMBLY_FOLDERS: &[&str] = &["Kernels/device/ptx", "Kernels/baselines"];

/// Where an architecture has one word, that of its shelf: portable, hopper, blackwell.
const SHELVED_FOLDERS: &[&str] = &["Kernels", "bazel/private", "bazel/cuda"];

/// Exceptions: libraries, results and what strangers write have names of their own.
const OTHER_NAMES: &[&str] = &[
    "Kernels/baselines",
    "Kernels/benchmarks",
    "Kernels/examples",
    "Kernels/libraries",
    "Kernels/on_demand",
];

/// The list of SMs, who maps a GPU to its shelf, and the words of the compiler.
const SM_FILES: &[&str] = &[
    "bazel/private/archs.bzl",
    "Kernels/device/machine.cu",
    "Kernels/device/ptx",
    "Kernels/emulator",
];

/// Former words for a shelf; split up as above.
const FORMER_WORDS: &[&str] = &[concat!("see", "saw"), concat!("mma_", "sync")];

/// One thing to fix.
#[derive(Debug, PartialEq, Eq)]
pub struct Finding {
    pub line: usize,
    pub message: String,
}

fn finding(line: usize, message: impl Into<String>) -> Finding {
    Finding {
        line: line + 1,
        message: message.into(),
    }
}

/// Width, trailing blanks, unfinished markers, registry hosts and machine paths.
pub fn check_lines(path: &Path, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let is_lock = path.to_string_lossy().contains(".lock") || path.ends_with("Cargo.lock");
    for (number, line) in text.lines().enumerate() {
        let width = line.chars().count();
        let breakable = !line.contains("://") && !line.contains("sha256") && !line.starts_with('|');
        if width > WIDTH && breakable && !is_lock && !is_data(path) {
            findings.push(finding(
                number,
                format!("{width} columns; the limit is {WIDTH}"),
            ));
        }
        if line.ends_with([' ', '\t']) && !is_data(path) {
            findings.push(finding(number, "trailing whitespace"));
        }
        for marker in MARKERS.iter().filter(|marker| line.contains(**marker)) {
            findings.push(finding(number, format!("leftover '{marker}'")));
        }
        for host in HOSTS.iter().filter(|host| line.contains(**host)) {
            findings.push(finding(
                number,
                format!("names the registry host {host}; use its client instead"),
            ));
        }
        for folder in MACHINE_FOLDERS
            .iter()
            .filter(|folder| names_folder(line, folder))
        {
            findings.push(finding(
                number,
                format!("names {folder}, which is specific to one machine"),
            ));
        }
    }
    if !text.is_empty() && !text.ends_with('\n') {
        findings.push(finding(
            text.lines().count().saturating_sub(1),
            "no newline at the end of the file",
        ));
    }
    findings
}

/// Inline assembly lives on one shelf, where every instruction has a name and a contract.
pub fn check_assembly(path: &Path, text: &str) -> Vec<Finding> {
    let is_cuda = path.extension().is_some_and(|extension| {
        ["cu", "cuh", "h", "cc"]
            .iter()
            .any(|known| extension == *known)
    });
    if !is_cuda
        || ASSEMBLY_FOLDERS
            .iter()
            .any(|folder| path.starts_with(folder))
    {
        return Vec::new();
    }
    text.lines()
        .enumerate()
        .filter(|(_, line)| has_assembly(line))
        .map(|(number, _)| {
            let shelf = ASSEMBLY_FOLDERS[0];
            finding(
                number,
                format!("inline assembly outside {shelf}; call a function there, or add one"),
            )
        })
        .collect()
}

/// Kernels and build macros call an architecture by its shelf, never by an SM or an instruction.
pub fn check_arch_words(path: &Path, text: &str) -> Vec<Finding> {
    let within = |folders: &[&str]| folders.iter().any(|folder| path.starts_with(folder));
    let is_prose = path.extension().is_some_and(|extension| extension == "md");
    if !within(SHELVED_FOLDERS) || within(OTHER_NAMES) || within(SM_FILES) || is_prose {
        return Vec::new();
    }
    let mut findings = Vec::new();
    let name = path.to_string_lossy();
    if let Some(word) = words(&name).find(|word| is_sm(word) || FORMER_WORDS.contains(word)) {
        let message = format!("'{word}' in a path; use portable, hopper or blackwell");
        findings.push(finding(0, message));
    }
    for (number, line) in text.lines().enumerate() {
        let code = line.split("//").next().unwrap_or_default();
        let code = code.split("# ").next().unwrap_or_default();
        let word = words(code).find(|word| is_sm(word) || FORMER_WORDS.contains(word));
        if let Some(word) = word {
            findings.push(finding(
                number,
                format!(
                    "'{word}' names an architecture; use its shelf: portable, hopper, blackwell"
                ),
            ));
        }
    }
    findings
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
}

/// `sm_90a`, `launch_sm90`, `kSm100`, ...
fn is_sm(word: &str) -> bool {
    let word = word.to_ascii_lowercase();
    word.match_indices("sm").any(|(at, sm)| {
        let rest = word[at + sm.len()..].trim_start_matches('_');
        let digits = rest.chars().take_while(char::is_ascii_digit).count();
        let starts = ["", "k"].contains(&&word[..at]) || word[..at].ends_with('_');
        starts && digits >= 2
    })
}

/// Whether the keyword is in the code of a line, rather than in its comment or in a longer word.
fn has_assembly(line: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    code.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .any(|word| matches!(word, "asm" | "__asm" | "__asm__"))
}

/// Measured results, locks and pictures: not written by hand.
fn is_data(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension == "json" || extension == "csv" || extension == "svg")
        || path.starts_with("results")
}

/// Whether `folder` starts a path, rather than being inside a longer one.
fn names_folder(line: &str, folder: &str) -> bool {
    line.match_indices(folder).any(|(at, _)| {
        !line[..at].ends_with(|c: char| c.is_ascii_alphanumeric() || "_.-}~$".contains(c))
    })
}

/// Dead relative links and images in a Markdown file.
pub fn check_links(path: &Path, text: &str, files: &BTreeSet<PathBuf>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut in_code = false;
    for (number, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        }
        if in_code {
            continue;
        }
        for target in link_targets(line) {
            let file = target.split('#').next().unwrap_or_default();
            if file.is_empty() || file.contains("://") || file.starts_with("mailto:") {
                continue;
            }
            let resolved = resolve(path.parent().unwrap_or(Path::new("")), file);
            let exists =
                files.contains(&resolved) || files.iter().any(|f| f.starts_with(&resolved));
            if !exists {
                findings.push(finding(number, format!("dead link to '{target}'")));
            }
        }
    }
    findings
}

/// The targets of `[text](target)` in a line.
fn link_targets(line: &str) -> Vec<&str> {
    line.match_indices("](")
        .filter_map(|(at, _)| {
            line[at + 2..]
                .split_once(')')
                .map(|(target, _)| target.trim())
        })
        .collect()
}

fn resolve(folder: &Path, link: &str) -> PathBuf {
    let mut resolved = PathBuf::new();
    for component in folder.join(link).components() {
        match component {
            Component::ParentDir => {
                resolved.pop();
            }
            Component::CurDir => {}
            other => resolved.push(other),
        }
    }
    resolved
}

/// Every pinned artifact states its licence and is fully pinned.
pub fn check_artifact_lock(text: &str) -> Vec<Finding> {
    let lock: serde_json::Value = match serde_json::from_str(text) {
        Ok(lock) => lock,
        Err(error) => return vec![finding(error.line().saturating_sub(1), error.to_string())],
    };
    let Some(artifacts) = lock["artifacts"].as_array() else {
        return vec![finding(0, "has no list 'artifacts'")];
    };
    let mut findings = Vec::new();
    for artifact in artifacts {
        let name = artifact["name"]
            .as_str()
            .unwrap_or("an artifact without a name");
        for field in ["licence", "version", "sha256", "upstream"] {
            if artifact[field].as_str().is_none_or(str::is_empty) {
                findings.push(finding(0, format!("{name} has no {field}")));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(findings: Vec<Finding>) -> String {
        findings
            .iter()
            .map(|f| format!("{}: {}\n", f.line, f.message))
            .collect()
    }

    #[test]
    fn finds_each_fault_on_its_line() {
        let text = format!(
            "fine\n{}\nend \n// {} later\nsee {}/simple\nin {}someone/x\n",
            "w".repeat(121),
            MARKERS[0],
            HOSTS[0],
            MACHINE_FOLDERS[1]
        );
        let found = messages(check_lines(Path::new("a.rs"), &text));
        let lines: Vec<&str> = found.lines().map(|line| &line[..2]).collect();
        assert_eq!(lines, ["2:", "3:", "4:", "5:", "6:"], "{found}");
    }

    #[test]
    fn lets_be_what_only_looks_like_a_fault() {
        let long_link = format!("see https://example.org/{}\n", "a".repeat(120));
        assert_eq!(check_lines(Path::new("a.md"), &long_link), []);
        assert_eq!(
            check_lines(Path::new("a.sh"), "\"$prefix/root/x\" /usr/home/\n"),
            []
        );
    }

    #[test]
    fn a_missing_last_newline_is_found() {
        assert_eq!(
            messages(check_lines(Path::new("a"), "x")),
            "1: no newline at the end of the file\n"
        );
    }

    #[test]
    fn assembly_stands_on_its_shelf_alone() {
        let text = "// asm is elsewhere\nint plasma;\n    asm volatile(\"bar.sync 1;\");\n";
        let found = messages(check_assembly(Path::new("Kernels/gemm/a.cuh"), text));
        assert!(
            found.starts_with("3: inline assembly outside Kernels/device/ptx;"),
            "{found}"
        );
        assert_eq!(found.lines().count(), 1, "{found}");
        let macro_of_it = "#define A(...) asm(__VA_ARGS__)\n";
        assert_eq!(check_assembly(Path::new("a/b.h"), macro_of_it).len(), 1);
        for elsewhere in [
            "Kernels/device/ptx/a.cuh",
            "Kernels/baselines/x/a.cu",
            "a.rs",
        ] {
            assert_eq!(
                check_assembly(Path::new(elsewhere), text),
                [],
                "{elsewhere}"
            );
        }
    }

    #[test]
    fn architectures_have_one_word() {
        let in_gemm = |text| messages(check_arch_words(Path::new("Kernels/gemm/a.cuh"), text));
        for text in ["if (sm_90a) {}\n", "kSm100\n", "launch_sm90();\n"] {
            assert!(in_gemm(text).contains("names an architecture"), "{text}");
        }
        assert_eq!(in_gemm("// sm_90a has wgmma\nint smem = small;\n"), "");
        let path = Path::new("Kernels/mla/sm90/a.cuh");
        assert!(messages(check_arch_words(path, "")).starts_with("1: 'sm90' in a path"));
        let word = format!("int {};\n", FORMER_WORDS[0]);
        assert!(in_gemm(&word).starts_with("1: "));
        for elsewhere in [
            "Kernels/baselines/x/a.cu",
            "bazel/private/archs.bzl",
            "a.rs",
        ] {
            let found = check_arch_words(Path::new(elsewhere), "sm_90a\n");
            assert_eq!(found, [], "{elsewhere}");
        }
    }

    #[test]
    fn links_are_resolved_from_their_file() {
        let files = BTreeSet::from([PathBuf::from("docs/A.md"), PathBuf::from("README.md")]);
        let text =
            "[a](A.md#part) [up](../README.md) [folder](../docs) [gone](B.md)\n```\n[x](y)\n```\n";
        let found = messages(check_links(Path::new("docs/C.md"), text, &files));
        assert_eq!(found, "1: dead link to 'B.md'\n");
    }

    #[test]
    fn a_lock_entry_without_a_licence_is_named() {
        let lock = r#"{"artifacts": [{"name": "x", "version": "1", "sha256": "0", "upstream": "u", "licence": ""}]}"#;
        assert_eq!(messages(check_artifact_lock(lock)), "1: x has no licence\n");
    }
}
