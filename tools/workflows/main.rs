//! Checks .github/workflows for what a generic linter does not know: how this project measures, and what it
//! keeps secret; see `rules`.

mod rules;

use std::path::Path;
use std::process::ExitCode;
use std::{fs, io};

fn main() -> ExitCode {
    match run() {
        Ok(0) => ExitCode::SUCCESS,
        Ok(count) => {
            eprintln!("workflows: {count} to fix");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("workflows: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Prints the findings and counts them.
fn run() -> io::Result<usize> {
    let root = workspace::root()?;
    let folder = Path::new(".github/workflows");
    let files = workspace::files(&root)?;
    let workflows: Vec<_> = files
        .iter()
        .filter(|path| path.starts_with(folder))
        .collect();
    if workflows.is_empty() {
        return Err(io::Error::other(format!("no file in {}", folder.display())));
    }
    let mut count = 0;
    for path in workflows {
        for finding in rules::check(&fs::read_to_string(root.join(path))?) {
            println!("{}: {finding}", path.display());
            count += 1;
        }
    }
    Ok(count)
}
