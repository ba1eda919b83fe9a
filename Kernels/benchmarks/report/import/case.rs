//! One workload of a definition: sizes of its axes, and the lists that its inputs store.

use super::definition::{Axis, Definition, Input, Workload};
use super::safetensors::read_integers;
use crate::ReportingError;
use std::path::{Component, Path, PathBuf};

/// Why a workload becomes no shape.
#[derive(Debug)]
pub enum Refusal {
    /// It is sound, but no bench takes it or it does not say enough.
    LeftOut(String),
    /// A file that it refers to is not what it must be.
    Bad(ReportingError),
}

pub fn left_out<T>(reason: impl ToString) -> Result<T, Refusal> {
    Err(Refusal::LeftOut(reason.to_string()))
}

pub struct Case<'a> {
    pub definition: &'a Definition,
    pub workload: &'a Workload,
}

impl Case<'_> {
    /// The size of the first of these axes that the definition has.
    pub fn size(&self, names: &[&str]) -> Result<usize, Refusal> {
        for name in names {
            match (
                self.definition.axes.get(*name),
                self.workload.axes.get(*name),
            ) {
                (Some(Axis::Const { value }), _) | (Some(Axis::Var), Some(value)) if *value > 0 => {
                    return Ok(*value);
                }
                (Some(Axis::Var), None) => {
                    return left_out(format!(
                        "axis '{name}' is variable, and no workload file gives it a size"
                    ));
                }
                (Some(_), _) => return left_out(format!("axis '{name}' is 0")),
                (None, _) => {}
            }
        }
        left_out(format!("it has no axis named {}", names.join(" or ")))
    }

    pub fn has_input(&self, name: &str) -> bool {
        self.definition.inputs.contains_key(name)
    }

    /// Lengths from offsets: of each sequence or group, in order.
    pub fn lengths(&self, input: &str) -> Result<Vec<usize>, Refusal> {
        let offsets = self.integers(input)?;
        let bad = |problem: String| self.bad(format!("'{input}' {problem}"));
        match offsets.first() {
            Some(0) => {}
            Some(first) => return Err(bad(format!("starts at {first}, not at 0"))),
            None => return Err(bad("is empty".to_owned())),
        }
        if offsets.len() == 1 {
            return left_out(format!("'{input}' has no sequences"));
        }
        let length = |pair: &[i64]| match usize::try_from(pair[1] - pair[0]) {
            Ok(length) => Ok(length),
            Err(_) => Err(bad(format!("decreases from {} to {}", pair[0], pair[1]))),
        };
        // Offsets that start at 0 and do not decrease are not negative, nor can a difference overflow.
        let mut lengths = Vec::with_capacity(offsets.len() - 1);
        for pair in offsets.windows(2) {
            if pair[1] < 0 {
                return Err(bad(format!("has the negative offset {}", pair[1])));
            }
            lengths.push(length(pair)?);
        }
        Ok(lengths)
    }

    /// A list that the workload stores.
    pub fn integers(&self, input: &str) -> Result<Vec<i64>, Refusal> {
        let (path, key) = match self.workload.inputs.get(input) {
            Some(Input::Safetensors { path, tensor_key }) => (path, tensor_key),
            Some(Input::Random) => {
                return left_out(format!(
                    "'{input}' is random: its values are not in the trace"
                ))
            }
            Some(Input::Other) | None => {
                return left_out(format!("'{input}' has no values in the trace"))
            }
        };
        let file = self.file(path)?;
        let told = |problem: String| Refusal::Bad(ReportingError::input(file.display(), problem));
        let opened = std::fs::File::open(&file).map_err(|error| told(error.to_string()))?;
        let integers = read_integers(opened, key).map_err(told)?;
        let declared = self.definition.inputs.get(input);
        if let Some([axis]) = declared.and_then(|tensor| tensor.shape.as_deref()) {
            let size = self.size(&[axis])?;
            if size != integers.len() {
                let count = integers.len();
                return Err(told(format!(
                    "has {count} elements in '{key}', but axis '{axis}' is {size}"
                )));
            }
        }
        Ok(integers)
    }

    /// A path of a workload, relative to the root of its trace set; it may not leave that.
    fn file(&self, path: &Path) -> Result<PathBuf, Refusal> {
        let shown = path.display();
        let inside = |part| matches!(part, Component::Normal(_) | Component::CurDir);
        if !path.components().all(inside) {
            return Err(self.bad(format!("path '{shown}' leaves the folder of the trace set")));
        }
        let root = root(&self.workload.origin);
        let found = |path: &Path| {
            path.canonicalize()
                .map_err(|error| self.bad(format!("cannot find '{}': {error}", path.display())))
        };
        let (root, file) = (found(root)?, found(&root.join(path))?);
        if !file.starts_with(&root) {
            return Err(self.bad(format!("path '{shown}' leaves the folder of the trace set")));
        }
        if !file.is_file() {
            return Err(self.bad(format!("'{shown}' is not a file")));
        }
        Ok(file)
    }

    fn bad(&self, problem: String) -> Refusal {
        let uuid = &self.workload.uuid;
        let origin = self.workload.origin.display();
        Refusal::Bad(ReportingError::input(
            origin,
            format!("workload {uuid}: {problem}"),
        ))
    }
}

/// The folder above `workloads` or `traces`, as FlashInfer-Bench lays out a trace set; otherwise the
/// folder of the file.
fn root(origin: &Path) -> &Path {
    let folder = match origin.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let named = |folder: &&Path| {
        let name = folder.file_name();
        name.is_some_and(|name| name == "workloads" || name == "traces")
    };
    match folder.ancestors().find(named).and_then(Path::parent) {
        Some(root) if root != Path::new("") => root,
        Some(_) => Path::new("."),
        None => folder,
    }
}

#[cfg(test)]
mod tests {
    use super::super::safetensors::tests::file;
    use super::*;

    #[test]
    fn blobs_are_relative_to_the_trace_set() {
        for (origin, expected) in [
            ("x.jsonl", "."),
            ("a/x.jsonl", "a"),
            ("set/workloads/gemm/x.jsonl", "set"),
            ("set/traces/x.jsonl", "set"),
            ("workloads/gemm/x.jsonl", "."),
        ] {
            assert_eq!(root(Path::new(origin)), Path::new(expected), "{origin}");
        }
    }

    /// The lengths of offsets stored beside a workload that refers to them by `path`.
    fn lengths(offsets: &[i32], path: &str) -> Result<Vec<usize>, Refusal> {
        let folder = tempfile::TempDir::new().unwrap();
        let inner = folder.path().join("inner");
        std::fs::create_dir(&inner).unwrap();
        let (count, bytes) = (offsets.len(), offsets.len() * 4);
        let header = format!(
            r#"{{"p": {{"dtype": "I32", "shape": [{count}], "data_offsets": [0, {bytes}]}}}}"#
        );
        let data: Vec<u8> = offsets
            .iter()
            .flat_map(|offset| offset.to_le_bytes())
            .collect();
        std::fs::write(inner.join("b.safetensors"), file(&header, &data)).unwrap();
        std::fs::write(folder.path().join("out.safetensors"), file(&header, &data)).unwrap();
        std::os::unix::fs::symlink("../out.safetensors", inner.join("link.safetensors")).unwrap();
        let definition = r#"{"name": "n", "op_type": "o", "axes": {"len": {"type": "var"}},
            "inputs": {"kv_indptr": {"shape": ["len"], "dtype": "int32"}}}"#;
        let workload = serde_json::json!({"uuid": "u1", "axes": {"len": 3}, "inputs": {"kv_indptr":
            {"type": "safetensors", "path": path, "tensor_key": "p"}}});
        let mut workload: Workload = serde_json::from_value(workload).unwrap();
        workload.origin = inner.join("w.jsonl");
        let definition: Definition = serde_json::from_str(definition).unwrap();
        let case = Case {
            definition: &definition,
            workload: &workload,
        };
        case.lengths("kv_indptr")
    }

    fn refused(offsets: &[i32], path: &str) -> String {
        match lengths(offsets, path) {
            Err(Refusal::Bad(error)) => error.to_string(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn offsets_become_lengths_or_a_sentence() {
        let blob = "./b.safetensors";
        assert_eq!(lengths(&[0, 7, 7], blob).unwrap(), [7, 0]);
        let told = refused(&[0, 7, 6], blob);
        assert!(
            told.ends_with("workload u1: 'kv_indptr' decreases from 7 to 6"),
            "{told}"
        );
        assert!(refused(&[0, -7, 6], blob).ends_with("has the negative offset -7"));
        assert!(refused(&[1, 7, 8], blob).ends_with("starts at 1, not at 0"));
        assert!(refused(&[0, 7], blob).ends_with("2 elements in 'p', but axis 'len' is 3"));
    }

    #[test]
    fn a_path_stays_inside() {
        for path in [
            "../out.safetensors",
            "/etc/hostname",
            "a/../../x",
            "link.safetensors",
        ] {
            let told = refused(&[0, 1, 2], path);
            assert!(
                told.contains("leaves the folder of the trace set"),
                "{told}"
            );
        }
        assert!(refused(&[0, 1, 2], "none.safetensors").contains("cannot find"));
        assert!(refused(&[0, 1, 2], ".").contains("is not a file"));
    }
}
