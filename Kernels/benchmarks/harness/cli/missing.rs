//! `--build-missing`: builds the kernels that baselines lack, before anything is opened or timed.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};

use contender::DeviceKind;

use crate::selection::Selection;
use crate::UsageError;

const TOOL: [&str; 3] = ["run", "//tools/artifacts", "--"];

/// Builds everything that is missing for the selected problems, or nothing is measured.
pub fn build(selection: &Selection) -> Result<(), UsageError> {
    let builds = builds(selection);
    if builds.is_empty() {
        return Ok(());
    }
    let root = workspace::root().map_err(|error| {
        let commands: Vec<String> = builds.iter().map(|build| text(build)).collect();
        UsageError(format!(
            "--build-missing needs the checkout ({error}); run there: {}",
            commands.join(" && ")
        ))
    })?;
    builds.iter().try_for_each(|build| run(&root, build))
}

/// What `artifacts` is called with, each once.
fn builds(selection: &Selection) -> BTreeSet<Vec<String>> {
    // Nothing is built for the CPU or the interpreter.
    if selection.choices.device != DeviceKind::Cuda {
        return BTreeSet::new();
    }
    let mut builds = BTreeSet::new();
    for (index, problem) in selection.problems.iter().enumerate() {
        for contender in selection.contenders_of(index) {
            // A program for several architectures names them all.
            let archs = selection.arch.split('+');
            builds.extend(archs.filter_map(|arch| contender.missing(&**problem, arch)));
        }
    }
    builds
}

fn text(build: &[String]) -> String {
    format!("./bazelw {} {}", TOOL.join(" "), build.join(" "))
}

fn run(root: &Path, build: &[String]) -> Result<(), UsageError> {
    workspace::tell!("{}", text(build));
    let mut command = Command::new(root.join("bazelw"));
    command.args(TOOL).args(build).current_dir(root);
    // The bench's own output may be read by a program.
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(UsageError(format!(
            "`{}` failed ({status}); without --build-missing the rows say what is missing",
            text(build)
        ))),
        Err(error) => Err(UsageError(format!(
            "cannot start `{}`: {error}",
            text(build)
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    fn build_with(script: Option<&str>) -> Result<(), UsageError> {
        let root = tempfile::tempdir().unwrap();
        if let Some(script) = script {
            let path = root.path().join("bazelw");
            fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
            fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        }
        let build = ["build", "quack", "--width", "5120"].map(str::to_owned);
        run(root.path(), &build)
    }

    #[test]
    fn a_build_that_fails_or_does_not_start_stops_the_run() {
        let arguments = r#"test "$*" = "run //tools/artifacts -- build quack --width 5120""#;
        assert_eq!(build_with(Some(arguments)), Ok(()));
        let failed = build_with(Some("exit 3")).unwrap_err().to_string();
        assert!(failed.contains("exit status: 3"), "{failed}");
        let absent = build_with(None).unwrap_err().to_string();
        for message in [failed, absent] {
            let command = "`./bazelw run //tools/artifacts -- build quack --width 5120`";
            assert!(message.contains(command), "{message}");
        }
    }
}
