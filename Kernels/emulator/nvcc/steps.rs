//! What nvcc would do, as `--dryrun` prints it, and what is done instead.

/// A line of nvcc's plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A variable that later commands see.
    Variable(String, String),
    /// PTX for the SM that is rewritten: the file, and the command that assembles another in its place.
    Assemble { ptx: String, command: Assembly },
    /// A command for the shell. Of a file that is to be deleted nobody minds if it is not there.
    Command { text: String, may_fail: bool },
}

/// A call of ptxas, around the name of the file that it reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assembly {
    before: String,
    after: String,
}

impl Assembly {
    pub fn of(&self, ptx: &str) -> String {
        format!("{}{ptx}{}", self.before, self.after)
    }
}

/// The SM of the sources, and the one that machine code is made for; nvcc names the image by the number.
const FROM: &str = "100a";
const TO: &str = "90a";

/// The steps of a plan, in order.
///
/// # Errors
///
/// Where a call of ptxas for the SM of the sources is not understood.
pub fn steps(plan: &str) -> Result<Vec<Step>, String> {
    let lines = plan.lines().filter_map(|line| line.strip_prefix("#$ "));
    lines.map(step).collect()
}

fn step(line: &str) -> Result<Step, String> {
    if let Some((name, value)) = variable(line) {
        return Ok(Step::Variable(name.to_owned(), value.to_owned()));
    }
    let arch = format!("-arch=sm_{FROM}");
    match line.split_whitespace().next() {
        Some("ptxas") if line.contains(&arch) => {
            let line = line.replace(&arch, &format!("-arch=sm_{TO}"));
            let end = line.find(".ptx\"").map(|at| at + ".ptx".len());
            let start = end.and_then(|end| Some(line[..end].rfind('"')? + 1));
            let (Some(start), Some(end)) = (start, end) else {
                return Err(format!("no PTX in the call of ptxas: {line}"));
            };
            Ok(Step::Assemble {
                ptx: line[start..end].to_owned(),
                command: Assembly {
                    before: line[..start].to_owned(),
                    after: line[end..].to_owned(),
                },
            })
        }
        Some("fatbinary") => Ok(Step::Command {
            text: line.replace(
                &format!("kind=elf,sm={FROM},"),
                &format!("kind=elf,sm={TO},"),
            ),
            may_fail: false,
        }),
        first => Ok(Step::Command {
            text: line.to_owned(),
            may_fail: first == Some("rm"),
        }),
    }
}

// NAME=value, as nvcc's profile has them; a command's first word has a quote, a slash or no equals sign.
fn variable(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once('=')?;
    let is_name = |byte: u8| byte == b'_' || byte.is_ascii_uppercase() || byte.is_ascii_digit();
    (!name.is_empty() && name.bytes().all(is_name)).then_some((name, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: &str = r#"a warning
#$ _SPACE_=
#$ PATH=/toolkit/bin:/bin
#$ "/usr/bin"/gcc -std=c++17 -D__CUDA_ARCH__=1000 "t.cu" -o "/tmp/t.ii"
#$ ptxas -arch=sm_100a -m64  --generate-line-info "/tmp/t.ptx"  -o "/tmp/t.cubin"
#$ fatbinary -64 --ident="t.cu" "--image3=kind=elf,sm=100a,file=/tmp/t.cubin" --embedded-fatbin="/tmp/t.fatbin.c"
#$ rm /tmp/t.fatbin
"#;

    #[test]
    fn the_assembler_and_the_image_change() {
        let steps = steps(PLAN).unwrap();
        assert_eq!(steps.len(), 6);
        assert_eq!(
            steps[1],
            Step::Variable("PATH".to_owned(), "/toolkit/bin:/bin".to_owned())
        );
        assert!(
            matches!(&steps[2], Step::Command { text, may_fail: false } if text.contains("=1000"))
        );
        let Step::Assemble { ptx, command } = &steps[3] else {
            panic!("{:?}", steps[3]);
        };
        assert_eq!(ptx, "/tmp/t.ptx");
        assert_eq!(
            command.of("/tmp/new.ptx"),
            r#"ptxas -arch=sm_90a -m64  --generate-line-info "/tmp/new.ptx"  -o "/tmp/t.cubin""#
        );
        assert!(
            matches!(&steps[4], Step::Command { text, .. } if text.contains("kind=elf,sm=90a,file"))
        );
        assert!(matches!(&steps[5], Step::Command { may_fail: true, .. }));
    }

    #[test]
    fn another_sm_is_assembled_as_it_is() {
        let line = r#"#$ ptxas -arch=sm_90a -m64 "/tmp/t.ptx" -o "/tmp/t.cubin""#;
        let [Step::Command { text, .. }] = &steps(line).unwrap()[..] else {
            panic!();
        };
        assert_eq!(text, &line[3..]);
    }

    #[test]
    fn a_call_without_ptx_is_refused() {
        let error = steps("#$ ptxas -arch=sm_100a --version").unwrap_err();
        assert!(error.contains("no PTX in the call of ptxas"), "{error}");
    }
}
