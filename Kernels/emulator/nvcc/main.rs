//! nvcc with another assembler: PTX for sm_100a is rewritten for sm_90a before ptxas sees it, so that programs built for
//! a B200 run on an H200. It takes nvcc's arguments, asks nvcc for its plan, and carries that out.

mod steps;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use rewriter::{Options, When};
use steps::Step;

/// An option of ours among nvcc's: tensor cores' work is done when the thread that issued it waits.
const LATE: &str = "--rewrite-late";

fn main() -> ExitCode {
    match run(env::args().skip(1).collect()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("nvcc for sm_100a on sm_90a: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(mut arguments: Vec<String>) -> Result<(), String> {
    let late = arguments.iter().any(|argument| argument == LATE);
    arguments.retain(|argument| argument != LATE);
    let options = Options {
        when: if late { When::Late } else { When::AtOnce },
        ..Options::default()
    };
    let source = arguments.windows(2).find(|pair| pair[0] == "-c");
    let source = source.map_or_else(String::new, |pair| pair[1].clone());
    let files = Scratch::new()?;
    let planned = Command::new(find_nvcc(Path::new("external"))?)
        .arg("--dryrun")
        .args(&arguments)
        .env("TMPDIR", &files.0)
        .output()
        .map_err(|error| format!("nvcc: {error}"))?;
    let plan = String::from_utf8_lossy(&planned.stderr);
    if !planned.status.success() {
        return Err(format!("nvcc --dryrun failed:\n{plan}"));
    }
    let mut variables = Vec::new();
    for step in steps::steps(&plan)? {
        match step {
            Step::Variable(name, value) => variables.push((name, value)),
            Step::Command { text, may_fail } => shell(&text, &variables, may_fail)?,
            Step::Assemble { ptx, command } => {
                let text = fs::read_to_string(&ptx).map_err(|error| format!("{ptx}: {error}"))?;
                let text = rewriter::rewrite(&text, &options)
                    .map_err(|error| format!("{source}: {error}"))?;
                let rewritten = format!("{ptx}.rewritten.ptx");
                fs::write(&rewritten, text).map_err(|error| format!("{rewritten}: {error}"))?;
                shell(&command.of(&rewritten), &variables, false)?;
            }
        }
    }
    Ok(())
}

/// nvcc of the toolkit for this CPU, below the folder of Bazel's repositories.
fn find_nvcc(repositories: &Path) -> Result<PathBuf, String> {
    let suffix = format!("cuda_toolkit_{}", env::consts::ARCH);
    let folders = fs::read_dir(repositories).map_err(|error| {
        format!(
            "{}: {error}; Bazel runs this program where it is",
            repositories.display()
        )
    })?;
    folders
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.to_string_lossy().ends_with(&suffix))
        .map(|path| path.join("nvidia/cu13/bin/nvcc"))
        .find(|path| path.exists())
        .ok_or_else(|| format!("no {suffix} with an nvcc in {}", repositories.display()))
}

fn shell(command: &str, variables: &[(String, String)], may_fail: bool) -> Result<(), String> {
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(command);
    shell.envs(variables.iter().map(|(name, value)| (name, value)));
    if may_fail {
        shell.stderr(std::process::Stdio::null());
    }
    let status = shell.status().map_err(|error| format!("sh: {error}"))?;
    if status.success() || may_fail {
        return Ok(());
    }
    let name = command.split_whitespace().next().unwrap_or_default();
    Err(format!("{name} failed: {status}"))
}

/// A folder of this call's own, deleted at its end.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Self, String> {
        let folder = env::temp_dir().join(format!("head-to-head-nvcc-{}", std::process::id()));
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        Ok(Self(folder))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_toolkit_is_found_by_its_cpu() {
        let folder = PathBuf::from(env::var_os("TEST_TMPDIR").expect("Bazel sets it"));
        let error = find_nvcc(&folder).unwrap_err();
        assert!(error.contains("no cuda_toolkit_"), "{error}");
        let name = format!("+artifacts+cuda_toolkit_{}", env::consts::ARCH);
        let bin = folder.join(name).join("nvidia/cu13/bin");
        fs::create_dir_all(&bin).unwrap();
        fs::write(bin.join("nvcc"), "").unwrap();
        assert_eq!(find_nvcc(&folder).unwrap(), bin.join("nvcc"));
        assert!(find_nvcc(&folder.join("absent")).is_err());
    }

    #[test]
    fn a_command_that_fails_is_named() {
        let variables = [("WORD".to_owned(), "7".to_owned())];
        shell("test $WORD = 7", &variables, false).unwrap();
        let error = shell("test $WORD = 8", &variables, false).unwrap_err();
        assert!(error.starts_with("test failed"), "{error}");
        shell("rm /nowhere/at/all", &variables, true).unwrap();
    }
}
