//! Shapes from FlashInfer-Bench: turns its definitions (JSON) and workloads (JSON lines) into
//! commands for our benches.
//!
//! A definition names constant and variable axes; a workload gives values to the variable ones.
//! Whatever no bench supports is reported, not dropped.

use crate::ReportingError;
use serde::Deserialize;
use std::collections::{BTreeMap, HashSet};

#[derive(Debug, Deserialize)]
struct Definition {
    name: String,
    op_type: String,
    axes: BTreeMap<String, Axis>,
    #[serde(default)]
    inputs: BTreeMap<String, Tensor>,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Axis {
    Const { value: usize },
    Var,
}

#[derive(Debug, Deserialize)]
struct Tensor {
    #[serde(default)]
    dtype: String,
}

/// One line of a workload file: `{"definition": ..., "workload": {"axes": {...}}}`.
#[derive(Debug, Deserialize)]
struct Line {
    definition: String,
    workload: Workload,
}

#[derive(Debug, Deserialize)]
struct Workload {
    axes: BTreeMap<String, usize>,
}

/// Which bench handles an op_type, and which axes form its shape; each entry lists the names in use.
struct Road {
    op_type: &'static str,
    command: &'static str,
    /// The tensor whose type is the bench's `--dtype`.
    typed_by: &'static [&'static str],
    shape: &'static [&'static [&'static str]],
}

const ROWS: &[&str] = &["batch_size", "num_tokens", "seq_len", "M"];
const COLUMNS: &[&str] = &["hidden_size", "N"];

const ROADS: [Road; 3] = [
    Road {
        op_type: "rmsnorm",
        command: "bench_norms --op rmsnorm_fwd",
        typed_by: &["hidden_states", "input"],
        shape: &[ROWS, COLUMNS],
    },
    Road {
        op_type: "fused_add_rmsnorm",
        command: "bench_norms --op fused_add_rmsnorm",
        typed_by: &["hidden_states", "input"],
        shape: &[ROWS, COLUMNS],
    },
    Road {
        op_type: "gemm",
        command: "bench_gemm",
        typed_by: &["A"],
        shape: &[&["M"], &["N"], &["K"]],
    },
];

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// One command per definition, with all its shapes.
    pub commands: Vec<String>,
    /// Definitions that no bench supports, with the reason.
    pub left_out: Vec<String>,
}

/// `files` are `(name, text)`: either a definition or the lines of a workload file.
pub fn import(files: &[(String, String)]) -> Result<Imported, ReportingError> {
    let mut definitions = Vec::new();
    let mut workloads: BTreeMap<String, Vec<BTreeMap<String, usize>>> = BTreeMap::new();
    for (name, text) in files {
        match serde_json::from_str::<Definition>(text) {
            Ok(definition) => definitions.push(definition),
            Err(error) => {
                let lines = parse_lines(name, text, &error)?;
                for line in lines {
                    let of = workloads.entry(line.definition).or_default();
                    of.push(line.workload.axes);
                }
            }
        }
    }
    let known: HashSet<&str> = definitions.iter().map(|known| &*known.name).collect();
    if let Some(name) = workloads.keys().find(|name| !known.contains(&***name)) {
        return Err(ReportingError::Usage(format!(
            "workloads of '{name}' but no definition of that name; pass its definition file too"
        )));
    }
    let mut imported = Imported::default();
    for definition in &definitions {
        let given = workloads.get(&definition.name);
        match command(definition, given.map_or(&[][..], Vec::as_slice)) {
            Ok(command) => imported.commands.push(command),
            Err(reason) => imported
                .left_out
                .push(format!("{}: {reason}", definition.name)),
        }
    }
    Ok(imported)
}

/// `as_definition` is why the text is not a definition, the useful error for a single object.
fn parse_lines(
    name: &str,
    text: &str,
    as_definition: &serde_json::Error,
) -> Result<Vec<Line>, ReportingError> {
    let filled = || {
        text.lines()
            .enumerate()
            .filter(|(_, line)| !line.trim().is_empty())
    };
    let parsed: Result<Vec<Line>, (usize, serde_json::Error)> = filled()
        .map(|(number, line)| serde_json::from_str(line).map_err(|error| (number + 1, error)))
        .collect();
    match parsed {
        Ok(lines) if !lines.is_empty() => Ok(lines),
        Err((number, error)) if number > 1 => Err(ReportingError::input(
            name,
            format!("line {number} is not a FlashInfer-Bench workload: {error}"),
        )),
        _ => Err(ReportingError::input(
            name,
            format!(
                "is neither a FlashInfer-Bench definition nor a workload file: {as_definition}"
            ),
        )),
    }
}

fn command(
    definition: &Definition,
    workloads: &[BTreeMap<String, usize>],
) -> Result<String, String> {
    let road = ROADS
        .iter()
        .find(|road| road.op_type == definition.op_type)
        .ok_or_else(|| format!("no bench supports op_type '{}'", definition.op_type))?;
    let none = BTreeMap::new();
    let given = if workloads.is_empty() {
        std::slice::from_ref(&none)
    } else {
        workloads
    };
    let (mut shapes, mut seen) = (Vec::new(), HashSet::new());
    for workload in given {
        let sizes: Result<Vec<String>, String> = road
            .shape
            .iter()
            .map(|names| size(definition, workload, names))
            .collect();
        let shape = sizes?.join("x");
        if seen.insert(shape.clone()) {
            shapes.push(shape);
        }
    }
    let dtype = road
        .typed_by
        .iter()
        .find_map(|name| definition.inputs.get(*name))
        .map(|tensor| dtype(&tensor.dtype))
        .transpose()?
        .map(|dtype| format!(" --dtype {dtype}"));
    let (command, dtype) = (road.command, dtype.unwrap_or_default());
    Ok(format!("{command}{dtype} --configs {}", shapes.join(",")))
}

fn size(
    definition: &Definition,
    workload: &BTreeMap<String, usize>,
    names: &[&str],
) -> Result<String, String> {
    for name in names {
        match (definition.axes.get(*name), workload.get(*name)) {
            (Some(Axis::Const { value }), _) | (Some(Axis::Var), Some(value)) if *value > 0 => {
                return Ok(value.to_string());
            }
            (Some(Axis::Var), None) => {
                return Err(format!(
                    "axis '{name}' is variable, and no workload file gives it a size"
                ));
            }
            (Some(_), _) => return Err(format!("axis '{name}' is 0")),
            (None, _) => {}
        }
    }
    Err(format!("it has no axis named {}", names.join(" or ")))
}

fn dtype(name: &str) -> Result<&'static str, String> {
    match name {
        "bfloat16" => Ok("bf16"),
        "float16" => Ok("f16"),
        "float32" => Ok("f32"),
        "float8_e4m3fn" => Ok("fp8_e4m3"),
        other => Err(format!("no bench supports the type '{other}'")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFINITION: &str = r#"{"name": "rmsnorm_h4096", "op_type": "rmsnorm", "description": "x",
        "axes": {"batch_size": {"type": "var"}, "hidden_size": {"type": "const", "value": 4096}},
        "inputs": {"hidden_states": {"shape": ["batch_size", "hidden_size"], "dtype": "bfloat16"},
                   "weight": {"shape": ["hidden_size"], "dtype": "bfloat16"}},
        "outputs": {}, "reference": "def run(): pass"}"#;

    fn files(texts: &[&str]) -> Vec<(String, String)> {
        let file = |(index, text): (usize, &&str)| (format!("file{index}"), (*text).to_owned());
        texts.iter().enumerate().map(file).collect()
    }

    #[test]
    fn workloads_become_shapes_of_a_bench() {
        let line = |rows: usize| {
            format!(
                r#"{{"definition": "rmsnorm_h4096", "solution": null,
                "workload": {{"uuid": "u", "axes": {{"batch_size": {rows}}}, "inputs": {{}}}}}}"#
            )
            .replace('\n', " ")
        };
        let lines = [line(1), line(128), line(128)].join("\n");
        let imported = import(&files(&[DEFINITION, &lines])).unwrap();
        let command = "bench_norms --op rmsnorm_fwd --dtype bf16 --configs 1x4096,128x4096";
        assert_eq!(imported.commands, [command]);
        assert!(imported.left_out.is_empty());
    }

    #[test]
    fn what_no_bench_takes_is_told() {
        let sampling = DEFINITION.replace(r#""op_type": "rmsnorm""#, r#""op_type": "sampling""#);
        let imported = import(&files(&[&sampling])).unwrap();
        assert!(imported.commands.is_empty());
        assert!(imported.left_out[0].contains("op_type 'sampling'"));
        let unsized_axis = import(&files(&[DEFINITION])).unwrap();
        assert!(unsized_axis.left_out[0].contains("'batch_size' is variable"));
        let strange = DEFINITION.replace("bfloat16", "int4");
        let lines = r#"{"definition": "rmsnorm_h4096", "workload": {"axes": {"batch_size": 2}}}"#;
        let imported = import(&files(&[&strange, lines])).unwrap();
        assert!(imported.left_out[0].contains("'int4'"));
    }

    #[test]
    fn foreign_files_are_errors() {
        for text in ["", "[]", "{\"meta\": {}}", "not JSON", &DEFINITION[..100]] {
            let error = import(&files(&[text])).unwrap_err().to_string();
            assert!(error.contains("neither"), "{error}");
        }
        let orphan = r#"{"definition": "other", "workload": {"axes": {}}}"#;
        let error = import(&files(&[orphan])).unwrap_err().to_string();
        assert!(error.contains("no definition of that name"), "{error}");
    }
}
