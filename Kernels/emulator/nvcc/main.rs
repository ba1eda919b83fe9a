//! nvcc with another assembler: PTX for sm_100a is rewritten for sm_90a before ptxas sees it, so that programs built
//! for a B200 run on an H200. It takes nvcc's arguments, asks nvcc for its plan, and carries that out.

mod steps;

use std::env;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use rewriter::{Options, When};
use steps::Step;

/// An option of ours among nvcc's: tensor cores' work is done when the thread that issued it waits.
const LATE: &str = "--rewrite-late";

fn main() -> ExitCode {
    match run(env::args().skip(1).collect(), Path::new("external")) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("nvcc for sm_100a on sm_90a: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(mut arguments: Vec<String>, repositories: &Path) -> Result<(), String> {
    let late = arguments.iter().any(|argument| argument == LATE);
    arguments.retain(|argument| argument != LATE);
    let options = Options {
        when: if late { When::Late } else { When::AtOnce },
        ..Options::default()
    };
    let source = arguments.windows(2).find(|pair| pair[0] == "-c");
    let source = source.map_or_else(String::new, |pair| pair[1].clone());
    let files = Scratch::new()?;
    let planned = Command::new(find_nvcc(repositories)?)
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
        // Sandboxes may give several calls the same process number.
        for number in 0.. {
            let name = format!("head-to-head-nvcc-{}-{number}", std::process::id());
            let folder = env::temp_dir().join(name);
            match fs::create_dir(&folder) {
                Ok(()) => return Ok(Self(folder)),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(format!("{}: {error}", folder.display())),
            }
        }
        Err("no name is left for a folder".to_owned())
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

    fn folder(name: &str) -> PathBuf {
        let folder = PathBuf::from(env::var_os("TEST_TMPDIR").expect("Bazel sets it")).join(name);
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    fn write_program(path: &Path, text: &str) {
        use std::os::unix::fs::PermissionsExt;
        fs::write(path, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// A toolkit whose nvcc plans to copy a text and assemble it, and whose ptxas copies.
    fn toolkit(name: &str, body: &str) -> PathBuf {
        let repositories = folder(name);
        let name = format!("+artifacts+cuda_toolkit_{}", env::consts::ARCH);
        let bin = repositories.join(name).join("nvidia/cu13/bin");
        fs::create_dir_all(&bin).unwrap();
        let (source, at) = (bin.join("kernel.ptx"), bin.display());
        let head = ".version 9.0\n.target sm_100a\n.address_size 64\n";
        fs::write(&source, format!("{head}.entry k() {{ {body} ret; }}")).unwrap();
        let plan = format!(
            "cat >&2 <<END\n#\\$ PATH={at}:/usr/bin:/bin\n#\\$ cp {at}/kernel.ptx $TMPDIR/t.ptx\n\
             #\\$ ptxas -arch=sm_100a -m64 \"$TMPDIR/t.ptx\" -o \"{at}/t.cubin\" \n#\\$ rm $TMPDIR/gone\nEND"
        );
        write_program(&bin.join("nvcc"), &plan);
        write_program(&bin.join("ptxas"), "test $1 = -arch=sm_90a && cp $3 $5");
        repositories
    }

    fn compile(repositories: &Path) -> Result<(), String> {
        let arguments = ["-c", "kernel.cu", "-o", "kernel.o", LATE].map(str::to_owned);
        run(arguments.to_vec(), repositories)
    }

    #[test]
    fn ptxas_gets_what_was_rewritten() {
        let repositories = toolkit("rewritten", "tcgen05.wait::ld.sync.aligned;");
        compile(&repositories).unwrap();
        let cubin = find_nvcc(&repositories).unwrap().with_file_name("t.cubin");
        let text = fs::read_to_string(cubin).unwrap();
        assert!(text.contains(".target sm_90a") && !text.contains("tcgen05."));
    }

    #[test]
    fn what_has_no_emulation_fails_with_its_place() {
        let repositories = toolkit("refused", "tcgen05.unheard_of [0];");
        let error = compile(&repositories).unwrap_err();
        assert!(
            error.starts_with("kernel.cu: k: PTX line 4: tcgen05.unheard_of"),
            "{error}"
        );
        let cubin = find_nvcc(&repositories).unwrap().with_file_name("t.cubin");
        assert!(!cubin.exists());
    }

    #[test]
    fn the_toolkit_is_found_by_its_cpu() {
        let folder = folder("toolkits");
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
