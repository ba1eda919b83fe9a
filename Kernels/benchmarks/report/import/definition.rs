//! FlashInfer-Bench's files: a definition (JSON) names the axes and inputs of an operation; a workload
//! (one JSON line) gives values to the variable axes and says where the inputs come from.

use crate::ReportingError;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Lines of all files together.
const LINES_MAX: usize = 100_000;
const NAME_MAX: usize = 150;

#[derive(Debug, Deserialize)]
pub struct Definition {
    pub name: String,
    pub op_type: String,
    pub axes: BTreeMap<String, Axis>,
    #[serde(default)]
    pub inputs: BTreeMap<String, Tensor>,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Axis {
    Const { value: usize },
    Var,
}

#[derive(Debug, Deserialize)]
pub struct Tensor {
    /// Names of axes; none for a scalar.
    #[serde(default)]
    pub shape: Option<Vec<String>>,
    #[serde(default)]
    pub dtype: String,
}

impl Tensor {
    /// Its type as the benches name it.
    pub fn bench_dtype(&self) -> Result<&'static str, String> {
        match &*self.dtype {
            "bfloat16" => Ok("bf16"),
            "float16" => Ok("f16"),
            "float32" => Ok("f32"),
            "float8_e4m3fn" => Ok("fp8_e4m3"),
            other => Err(format!("no bench supports the type '{other}'")),
        }
    }
}

/// `{"definition": ..., "workload": {...}}`; a trace has an evaluation too.
#[derive(Debug, Deserialize)]
struct Line {
    definition: String,
    workload: Workload,
}

#[derive(Debug, Default, Deserialize)]
pub struct Workload {
    #[serde(default)]
    pub uuid: String,
    pub axes: BTreeMap<String, usize>,
    #[serde(default)]
    pub inputs: BTreeMap<String, Input>,
    /// The file that it is from.
    #[serde(skip)]
    pub origin: PathBuf,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Input {
    Safetensors {
        path: PathBuf,
        tensor_key: String,
    },
    Random,
    #[serde(other)]
    Other,
}

/// Definitions in the order of the files, each with its workloads.
pub fn parse(
    files: &[(PathBuf, String)],
) -> Result<Vec<(Definition, Vec<Workload>)>, ReportingError> {
    let mut definitions: Vec<(Definition, Vec<Workload>)> = Vec::new();
    let mut lines = Vec::new();
    for (path, text) in files {
        match serde_json::from_str::<Definition>(text) {
            Ok(definition) => {
                check_name(&definition.name, path)?;
                if definitions
                    .iter()
                    .any(|(known, _)| known.name == definition.name)
                {
                    return Err(ReportingError::Usage(format!(
                        "two definitions are named '{}'; pass one of them",
                        definition.name
                    )));
                }
                definitions.push((definition, Vec::new()));
            }
            Err(error) => lines.extend(parse_lines(path, text, &error)?),
        }
        if lines.len() > LINES_MAX {
            return Err(ReportingError::Usage(format!(
                "more than {LINES_MAX} workloads; pass fewer files"
            )));
        }
    }
    let places: BTreeMap<String, usize> = definitions
        .iter()
        .enumerate()
        .map(|(place, (definition, _))| (definition.name.clone(), place))
        .collect();
    for line in lines {
        let Some(&place) = places.get(&line.definition) else {
            return Err(ReportingError::Usage(format!(
                "workloads of '{}' but no definition of that name; pass its definition file too",
                line.definition
            )));
        };
        definitions[place].1.push(line.workload);
    }
    Ok(definitions)
}

/// It names a suite and a file.
fn check_name(name: &str, path: &Path) -> Result<(), ReportingError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if name.is_empty() || name.len() > NAME_MAX || name.starts_with('.') || !name.chars().all(plain)
    {
        return Err(ReportingError::input(
            path.display(),
            format!(
                "the definition's name must be 1 to {NAME_MAX} letters, digits, '_', '-' and '.', \
                 and must not start with '.'"
            ),
        ));
    }
    Ok(())
}

/// `as_definition` is why the text is not a definition, the useful error for a single object.
fn parse_lines(
    path: &Path,
    text: &str,
    as_definition: &serde_json::Error,
) -> Result<Vec<Line>, ReportingError> {
    let mut lines: Vec<Line> = Vec::new();
    let filled = text.lines().enumerate();
    for (index, line) in filled
        .filter(|(_, line)| !line.trim().is_empty())
        .take(LINES_MAX + 1)
    {
        match serde_json::from_str::<Line>(line) {
            Ok(mut line) => {
                line.workload.origin = path.to_owned();
                lines.push(line);
            }
            Err(error) if index > 0 => {
                let number = index + 1;
                return Err(ReportingError::input(
                    path.display(),
                    format!("line {number} is not a FlashInfer-Bench workload: {error}"),
                ));
            }
            Err(_) => break,
        }
    }
    if lines.is_empty() {
        return Err(ReportingError::input(
            path.display(),
            format!(
                "is neither a FlashInfer-Bench definition nor a workload file: {as_definition}"
            ),
        ));
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(texts: &[&str]) -> Vec<(PathBuf, String)> {
        let file =
            |(index, text): (usize, &&str)| (format!("file{index}").into(), (*text).to_owned());
        texts.iter().enumerate().map(file).collect()
    }

    fn refused(texts: &[&str]) -> String {
        parse(&files(texts)).unwrap_err().to_string()
    }

    const GOOD: &str = r#"{"name": "n", "op_type": "gemm", "axes": {"M": {"type": "var"}}}"#;

    #[test]
    fn foreign_files_are_errors() {
        for text in ["", "[]", "{\"meta\": {}}", "not JSON", &GOOD[..30]] {
            let told = refused(&[text]);
            assert!(told.contains("file0: is neither"), "{told}");
        }
        let line = r#"{"definition": "other", "workload": {"axes": {}}}"#;
        assert!(refused(&[line]).contains("no definition of that name"));
        let told = refused(&[GOOD, &format!("{line}\n{{}}")]);
        assert!(told.contains("file1: line 2 is not"), "{told}");
        assert!(refused(&[GOOD, GOOD]).contains("two definitions are named 'n'"));
        for name in ["", "../n", ".n", "a b", "\\u001b[2J", &"n".repeat(200)] {
            let text = GOOD.replace("\"n\"", &format!("\"{name}\""));
            assert!(
                refused(&[&text]).contains("name must be 1 to 150"),
                "{name}"
            );
        }
        let negative = r#"{"definition": "n", "workload": {"axes": {"M": -1}}}"#;
        assert!(refused(&[GOOD, negative]).contains("neither"));
    }

    #[test]
    fn too_many_lines_are_refused() {
        let line = "{\"definition\":\"n\",\"workload\":{\"axes\":{}}}\n";
        let told = refused(&[GOOD, &line.repeat(LINES_MAX + 1)]);
        assert!(told.contains("more than 100000 workloads"), "{told}");
    }
}
