//! Checks the source tree for what formatters and compilers miss; see `rules`.

mod circles;
mod modules;
mod rules;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{fs, io};

use rules::Finding;

fn main() -> ExitCode {
    match run() {
        Ok(0) => ExitCode::SUCCESS,
        Ok(count) => {
            eprintln!("tidy: {count} to fix");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("tidy: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> io::Result<usize> {
    let root = workspace::root()?;
    let files: BTreeSet<PathBuf> = workspace::files(&root)?.into_iter().collect();
    if files.is_empty() {
        return Err(io::Error::other(format!("no file in {}", root.display())));
    }
    let mut count = 0;
    let mut rust = BTreeMap::new();
    for file in &files {
        // Files that are not text have no lines to check.
        let Ok(text) = fs::read_to_string(root.join(file)) else {
            continue;
        };
        for finding in check(file, &text, &files) {
            println!("{}:{}: {}", file.display(), finding.line, finding.message);
            count += 1;
        }
        if file.extension().is_some_and(|extension| extension == "rs") {
            rust.insert(file.clone(), text);
        }
    }
    let crates = files.iter().filter(|file| file.ends_with("BUILD.bazel"));
    let crates = crates
        .filter_map(|file| Some(file.parent()?.to_owned()))
        .collect();
    for circle in circles::check(&rust, &crates) {
        println!("{circle}");
        count += 1;
    }
    for complaint in check_modules(&root)? {
        println!("MODULE.bazel: {complaint}");
        count += 1;
    }
    Ok(count)
}

fn check_modules(root: &Path) -> io::Result<Vec<String>> {
    let read = |file| fs::read_to_string(root.join(file));
    let found = modules::check(
        &read("MODULE.bazel")?,
        &read(".bazelversion")?,
        &read("bazel/registry/published.json")?,
        &read("MODULE.bazel.lock")?,
    );
    found.map_err(io::Error::other)
}

fn check(file: &Path, text: &str, files: &BTreeSet<PathBuf>) -> Vec<Finding> {
    let mut findings = rules::check_lines(file, text);
    findings.extend(rules::check_assembly(file, text));
    findings.extend(rules::check_arch_words(file, text));
    if file.extension().is_some_and(|extension| extension == "md") {
        findings.extend(rules::check_links(file, text, files));
    }
    if file == Path::new("third_party/artifacts.lock.json") {
        findings.extend(rules::check_artifact_lock(text));
    }
    findings
}
