//! The command that measures a row again, from typed fields: a result file decides which of our
//! options have which values, and nothing else.

use record::{DeviceKind, GivenWorkload, Row, WorkloadFile, WORKLOADS_VERSION};
use std::path::Path;
use std::process::Command;

/// What follows an option.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Takes {
    Nothing,
    /// Names, separated by commas.
    Names,
    /// Shapes such as 4096x7168, separated by commas.
    Shapes,
    /// A whole number up to this.
    Number(u64),
}

/// The options of a `repro` that say how a row was measured. What it measured is in the row itself.
const OPTIONS: [(&str, Takes); 19] = [
    ("--configs", Takes::Shapes),
    ("--weight-dtype", Takes::Names),
    ("--mode", Takes::Names),
    ("--contenders", Takes::Names),
    ("--baseline", Takes::Names),
    ("--shapes-seed", Takes::Number(u64::MAX)),
    ("--timer", Takes::Names),
    ("--cache", Takes::Names),
    ("--protocol", Takes::Names),
    ("--processes", Takes::Number(16)),
    ("--warmup-ms", Takes::Number(60_000)),
    ("--iters", Takes::Number(1_000_000)),
    ("--rep-ms", Takes::Number(600_000)),
    ("--budget-ms", Takes::Number(600_000)),
    ("--energy-ms", Takes::Number(600_000)),
    ("--seed", Takes::Number(u64::MAX)),
    ("--entropy", Takes::Number(u64::MAX)),
    ("--steady", Takes::Nothing),
    ("--skip-verify", Takes::Nothing),
];
/// These are in the row, whatever its `repro` says.
const FROM_THE_ROW: [&str; 6] = [
    "--device",
    "--suite",
    "--workload",
    "--workloads",
    "--op",
    "--dtype",
];
/// The suite of shapes given by hand.
const CUSTOM: &str = "custom";
const WORD_MAX: usize = 4096;

/// The program and options that measure a row.
#[derive(Debug, PartialEq)]
pub struct Repro {
    pub program: String,
    /// As `--option=value`, so that no value is taken for an option.
    arguments: Vec<String>,
    /// The workload, if it comes from a file.
    file: Option<WorkloadFile>,
}

impl Repro {
    pub fn of(row: &Row, device: DeviceKind) -> Result<Repro, String> {
        let mut words = words(&row.repro)?.into_iter();
        let program = words.next().ok_or("the row has no repro command")?;
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        if !program.starts_with("bench_") || !program.chars().all(plain) {
            return Err(format!("'{program}' is not the name of a bench"));
        }
        let mut arguments = vec![
            format!("--device={device}"),
            format!("--workload={}", name(&row.workload.name)?),
            format!("--op={}", name(&row.op)?),
            format!("--dtype={}", name(&row.dtype)?),
        ];
        let mut given = Vec::new();
        while let Some(option) = words.next() {
            if FROM_THE_ROW.contains(&&*option) {
                words.next();
                continue;
            }
            let Some((_, takes)) = OPTIONS.iter().find(|(name, _)| *name == option) else {
                return Err(format!("'{option}' is not an option that a row may choose"));
            };
            if given.contains(&option) {
                return Err(format!("{option} is there twice"));
            }
            arguments.push(match takes {
                Takes::Nothing => option.clone(),
                takes => {
                    let value = words.next().ok_or(format!("{option} has no value"))?;
                    takes.check(&option, &value)?;
                    format!("{option}={value}")
                }
            });
            given.push(option);
        }
        let file = row.workload.shape.as_ref().map(|shape| WorkloadFile {
            workloads_version: WORKLOADS_VERSION,
            bench: program.clone(),
            suite: row.workload.suite.clone(),
            workloads: vec![GivenWorkload {
                name: row.workload.name.clone(),
                op: Some(row.op.clone()),
                shape: shape.clone(),
                provenance: row.workload.provenance.clone(),
                weight: row.workload.weight,
            }],
        });
        if file.is_none() && !given.iter().any(|option| option == "--configs") {
            if row.workload.suite == CUSTOM {
                return Err("its shape was given by hand, but --configs is missing".to_owned());
            }
            arguments.push(format!("--suite={}", name(&row.workload.suite)?));
        }
        Ok(Repro {
            program,
            arguments,
            file,
        })
    }

    /// The command, with its result file in a scratch folder.
    pub fn command(&self, programs: &Path, json: &Path) -> Result<Command, String> {
        let mut command = Command::new(programs.join(&self.program));
        let scratch = json.parent().unwrap_or(Path::new("."));
        command.args(self.arguments_in(scratch)?);
        command.arg("--json").arg(json);
        Ok(command)
    }

    /// The arguments, with the workload's file in a scratch folder.
    fn arguments_in(&self, scratch: &Path) -> Result<Vec<String>, String> {
        let mut arguments = self.arguments.clone();
        if let Some(file) = &self.file {
            let path = scratch.join("workloads.json");
            let text = file.to_json().map_err(|error| error.to_string())?;
            std::fs::write(&path, text).map_err(|error| error.to_string())?;
            arguments.push(format!("--workloads={}", path.display()));
        }
        Ok(arguments)
    }

    /// Contenders of the row under ncu, which counts `sections` and prints CSV. Before a kernel's name it puts the
    /// bench's name for the range of the launch, which ends with the contender.
    pub fn profile(
        &self,
        ncu: &Path,
        sections: &[&str],
        programs: &Path,
        contenders: &[&str],
        scratch: &Path,
    ) -> Result<Command, String> {
        let mut command = Command::new(ncu);
        // A locked clock is not the one that was raced. Every pass over the counters finds the caches as a sample does.
        let hot = self
            .arguments
            .iter()
            .any(|argument| argument == "--cache=hot");
        let caches = if hot { "none" } else { "all" };
        command.args([
            "--csv",
            "--print-units",
            "base",
            "--profile-from-start",
            "off",
        ]);
        command.args(["--clock-control", "none", "--cache-control", caches]);
        command.args(["--nvtx", "--print-nvtx-rename", "kernel"]);
        command.args(sections.iter().flat_map(|section| ["--section", section]));
        command.arg(programs.join(&self.program));
        let others = |argument: &&String| {
            !["--contenders=", "--baseline="]
                .iter()
                .any(|option| argument.starts_with(option))
        };
        command.args(self.arguments_in(scratch)?.iter().filter(others));
        let names: Result<Vec<&str>, String> = contenders.iter().map(|it| name(it)).collect();
        command
            .arg(format!("--contenders={}", names?.join(",")))
            .arg("--profile");
        Ok(command)
    }
}

impl Takes {
    fn check(self, option: &str, value: &str) -> Result<(), String> {
        let wrong = |what: &str| Err(format!("{option} is '{value}', {what}"));
        if value.len() > WORD_MAX {
            return Err(format!("{option} has {} characters", value.len()));
        }
        match self {
            Takes::Nothing => Ok(()),
            Takes::Names => name(value).map(drop),
            Takes::Shapes => match value
                .chars()
                .all(|c| c.is_ascii_digit() || "x,".contains(c))
            {
                true => Ok(()),
                false => wrong("not shapes such as 4096x7168"),
            },
            Takes::Number(most) => match value.parse::<u64>() {
                Ok(number) if number <= most => Ok(()),
                Ok(_) => wrong(&format!("more than {most}")),
                Err(_) => wrong("not a whole number"),
            },
        }
    }
}

/// Names have no say in where anything is read or written.
fn name(text: &str) -> Result<&str, String> {
    let odd = text.is_empty() || text.starts_with(['-', '/', '.', '@']) || text.contains("..");
    match odd || text.len() > WORD_MAX {
        true => Err(format!("'{text}' is not a name")),
        false => Ok(text),
    }
}

/// Splits a command line as a bench writes it: words separated by blanks, odd ones in single quotes.
fn words(command: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut characters = command.chars();
    while let Some(character) = characters.next() {
        match character {
            ' ' => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match characters.next() {
                        Some('\'') => break,
                        Some(quoted) => word.push(quoted),
                        None => return Err(format!("unclosed quote in '{command}'")),
                    }
                }
            }
            '\\' => word.get_or_insert_default().extend(characters.next()),
            plain => word.get_or_insert_default().push(plain),
        }
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::ContenderKind;

    fn of(repro: &str) -> Result<Repro, String> {
        let mut row = report_testing::row("op", 64, "ours", ContenderKind::Own, vec![1.0, 1.1]);
        row.repro = repro.to_owned();
        Repro::of(&row, DeviceKind::Cpu)
    }

    #[test]
    fn commands_are_split_as_they_were_quoted() {
        let split = words(r"bench_norms --workload 'a b' --op 'it'\''s' ''").unwrap();
        assert_eq!(
            split,
            ["bench_norms", "--workload", "a b", "--op", "it's", ""]
        );
        assert!(words("a 'b").is_err());
    }

    #[test]
    fn a_workload_of_a_file_brings_its_file_along() {
        let mut row = report_testing::row("op", 64, "ours", ContenderKind::Own, vec![1.0, 1.1]);
        row.repro = "bench_norms --workloads /etc/passwd --contenders ours".to_owned();
        row.workload.suite = "mine".to_owned();
        let shape = serde_json::json!({"rows": 64, "columns": 4096});
        row.workload.shape = shape.as_object().cloned();
        let repro = Repro::of(&row, DeviceKind::Cpu).unwrap();
        let scratch = tempfile::tempdir().unwrap();
        let arguments = repro.arguments_in(scratch.path()).unwrap();
        let path = scratch.path().join("workloads.json");
        assert!(
            arguments.contains(&format!("--workloads={}", path.display())),
            "{arguments:?}"
        );
        assert!(!arguments
            .iter()
            .any(|it| it.contains("passwd") || it.starts_with("--suite")));
        let file = WorkloadFile::read(&path).unwrap();
        assert_eq!((&*file.bench, &*file.suite), ("bench_norms", "mine"));
        assert_eq!(file.workloads[0].shape, *shape.as_object().unwrap());
    }

    #[test]
    fn a_row_chooses_how_it_was_measured_and_nothing_else() {
        let honest = "bench_norms --device cuda --suite x --workload y --op z --dtype f32 \
                      --weight-dtype same --mode fwd_bwd --contenders 'ours (again),ours' \
                      --protocol quick --seed 42 --entropy 18446744073709551615 --steady";
        let honest = of(honest).unwrap();
        for word in [
            "--device=cpu",
            "--op=op",
            "--contenders=ours (again),ours",
            "--steady",
        ] {
            assert!(honest.arguments.iter().any(|it| it == word), "{honest:?}");
        }
        for option in [
            "--csv",
            "--md",
            "--out-dir",
            "--json",
            "--resume",
            "--roofs",
            "--profile",
        ] {
            let told = of(&format!("bench_norms --configs 1x2 {option} /tmp/x")).unwrap_err();
            assert!(
                told.contains("not an option that a row may choose"),
                "{told}"
            );
            assert!(of(&format!("bench_norms {option}=/tmp/x")).is_err());
        }
        for (repro, why) in [
            ("bench_norms --iters 4000000000", "more than 1000000"),
            ("bench_norms --iters -1", "not a whole number"),
            ("bench_norms --seed 1 --seed 2", "twice"),
            ("bench_norms --configs /etc/passwd", "not shapes"),
            ("bench_norms --contenders --csv=/tmp/x", "is not a name"),
            ("bench_norms --baseline ../x", "is not a name"),
            ("bench_norms --iters", "no value"),
            ("../bench_norms", "not the name of a bench"),
            ("sh -c id", "not the name of a bench"),
            ("", "no repro"),
        ] {
            let told = of(repro).unwrap_err();
            assert!(told.contains(why), "{repro}: {told}");
        }
    }
}
