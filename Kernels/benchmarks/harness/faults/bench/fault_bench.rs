//! A benchmark whose contenders misbehave, to test the harness.

use std::process::ExitCode;

use cli::{Bench, Choices, DType, Shortcut, UsageError};
use contender::Suite;
use faults::{contenders, Scaled};

fn main() -> ExitCode {
    cli::run(Bench {
        name: "fault_bench",
        about: "Contenders that misbehave, each in one way",
        arch: option_env!("HEAD_TO_HEAD_ARCH").unwrap_or("none"),
        suites: &[Suite {
            name: "smoke",
            about: "one small shape",
        }],
        shortcuts: &[Shortcut {
            flag: "quick",
            suite: "smoke",
        }],
        dtypes: &[DType::Bf16],
        problems,
        contenders: |_| contenders(),
    })
}

fn problems(choices: &Choices) -> Result<Vec<Scaled>, UsageError> {
    if choices.given.is_some() {
        return choices.given();
    }
    if choices.configs.is_empty() {
        return Ok(vec![Scaled::new(64, 96)]);
    }
    let shape = |config: &Vec<usize>| match config[..] {
        [rows, columns] => Ok(Scaled::new(rows, columns)),
        _ => Err(UsageError(format!(
            "{config:?} does not have two sizes: expected MxN"
        ))),
    };
    choices.configs.iter().map(shape).collect()
}
