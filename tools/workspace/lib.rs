//! Where a program works: the source tree and its files, the user's working directory and what is read there, and
//! the user's ear, which may be closed.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// A line on standard output. Unlike `println!`, it survives a reader that has gone.
#[macro_export]
macro_rules! say {
    ($($words:tt)*) => {{
        let _ = std::io::Write::write_fmt(&mut std::io::stdout(), format_args!("{}\n", format_args!($($words)*)));
    }};
}

/// A line on standard error. Unlike `eprintln!`, it survives a reader that has gone: a message is never
/// worth a result.
#[macro_export]
macro_rules! tell {
    ($($words:tt)*) => {{
        let _ = std::io::Write::write_fmt(&mut std::io::stderr(), format_args!("{}\n", format_args!($($words)*)));
    }};
}

/// Names of folders without sources of ours.
const SKIPPED: &[&str] = &[".git", "target", "out", "node_modules"];

/// The repository's root: from `bazel run`, or in a test by following the runfiles' links.
pub fn root() -> io::Result<PathBuf> {
    if let Some(root) = env::var_os("BUILD_WORKSPACE_DIRECTORY") {
        return Ok(root.into());
    }
    let module = fs::canonicalize("MODULE.bazel").map_err(|error| {
        io::Error::other(format!(
            "no MODULE.bazel here ({error}): run this through ./bazelw"
        ))
    })?;
    Ok(module.parent().expect("a file has a folder").to_path_buf())
}

/// The user's working directory, best first: bazelw sets the first if it was outside the workspace.
const USER_FOLDERS: [&str; 2] = ["HEAD_TO_HEAD_WORKING_DIRECTORY", "BUILD_WORKING_DIRECTORY"];

/// Changes to the folder in which the user typed the command. `bazel run` starts programs in their runfiles, where
/// relative paths are meaningless and files get lost.
///
/// Call this first in `main`. Child processes inherit the folder and must stay there.
pub fn enter_user_folder() -> io::Result<()> {
    let Some(folder) = USER_FOLDERS.iter().find_map(env::var_os) else {
        return Ok(());
    };
    for variable in USER_FOLDERS {
        env::remove_var(variable);
    }
    env::set_current_dir(&folder).map_err(|error| {
        let folder = Path::new(&folder).display();
        io::Error::new(error.kind(), format!("cannot work in {folder}: {error}"))
    })
}

/// What a user's file holds, if that is at most `most` bytes. A pipe or a device, which may never end, is refused.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let mut bytes = Vec::new();
    let file = fs::File::open(path)?;
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > most {
        true => Err(io::Error::other(format!(
            "it is too long: at most {most} bytes are read"
        ))),
        false => Ok(bytes),
    }
}

/// Every source file below `root`, relative to it, sorted. Links and what git ignores at the root
/// (Bazel's output links, new results) are left out.
pub fn files(root: &Path) -> io::Result<Vec<PathBuf>> {
    let ignored = ignored_at_root(root)?;
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root.join(&folder))? {
            let entry = entry?;
            let name = entry.file_name();
            let path = folder.join(&name);
            let kind = entry.file_type()?;
            let text = name.to_string_lossy();
            let skipped = SKIPPED.contains(&text.as_ref())
                || folder.as_os_str().is_empty() && ignored.iter().any(|rule| matches(rule, &text));
            if skipped || kind.is_symlink() {
                continue;
            }
            if kind.is_dir() {
                folders.push(path);
            } else {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// The .gitignore rules for entries of the root: "/name", "/name/", "/prefix*" or "/*suffix".
fn ignored_at_root(root: &Path) -> io::Result<Vec<String>> {
    let text = fs::read_to_string(root.join(".gitignore"))?;
    Ok(text
        .lines()
        .filter_map(|line| line.trim().strip_prefix('/'))
        .map(|rule| rule.trim_end_matches('/').to_owned())
        .collect())
}

fn matches(rule: &str, name: &str) -> bool {
    match rule.split_once('*') {
        Some((prefix, suffix)) => name.starts_with(prefix) && name.ends_with(suffix),
        None => name == rule,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_never_end_is_not_read() {
        let scratch = tempfile::tempdir().unwrap();
        let file = scratch.path().join("file");
        fs::write(&file, "four").unwrap();
        assert_eq!(read(&file, 4).unwrap(), b"four");
        let error = read(&file, 3).unwrap_err().to_string();
        assert_eq!(error, "it is too long: at most 3 bytes are read");
        for path in [Path::new("/dev/zero"), scratch.path()] {
            let error = read(path, 4).unwrap_err().to_string();
            assert_eq!(error, "it is not a file");
        }
    }

    #[test]
    fn ignores_what_git_ignores_at_the_root_only() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path();
        fs::write(root.join(".gitignore"), "/bazel-*\n/out/\n/*.json\n").unwrap();
        fs::write(root.join("result.json"), "").unwrap();
        for folder in ["bazel-bin", "sub/bazel-notes", ".git"] {
            fs::create_dir_all(root.join(folder)).unwrap();
            fs::write(root.join(folder).join("a.rs"), "").unwrap();
        }
        let found = files(root).unwrap();
        assert_eq!(
            found,
            [Path::new(".gitignore"), Path::new("sub/bazel-notes/a.rs")]
        );
    }
}
