//! The file that describes a kernel: what it solves, where its code is, how it is launched.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use numeric::DType;
use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::expression::Expression;
use crate::tensor_map::MapDescription;

/// The version that this program reads.
const VERSION: u32 = 1;
const FILE_BYTES_MAX: u64 = 64 << 10;
const CODE_BYTES_MAX: u64 = 64 << 20;
const ARGUMENTS_MAX: usize = 64;
const ELF: &[u8] = b"\x7fELF";

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DescriptionError {
    #[error("cannot read {path}: {error}")]
    Unreadable { path: String, error: String },
    #[error("{path} does not describe a kernel: {error}")]
    Format { path: String, error: String },
    #[error("{path}: {reason}")]
    Invalid { path: String, reason: String },
}

/// `kernel.json`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Description {
    pub kernel_version: u32,
    /// PTX or a cubin, beside this file or in a folder below it.
    pub code: String,
    /// The kernel's symbol.
    pub entry: String,
    /// Operations that it solves.
    pub ops: Vec<String>,
    /// Types of problems that it solves.
    pub dtypes: Vec<DType>,
    /// Axes that must be multiples of a number.
    #[serde(default)]
    pub multiples_of: BTreeMap<String, u32>,
    /// One to three sizes.
    pub grid: Vec<Expression>,
    pub block: Vec<Expression>,
    #[serde(default)]
    pub cluster: Vec<Expression>,
    /// Dynamic shared memory.
    pub shared_bytes: Option<Expression>,
    pub arguments: Vec<Argument>,
}

/// One parameter of the kernel.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Argument {
    /// The address of a tensor.
    Tensor(String),
    /// An axis of the problem, such as m or epsilon.
    Axis(String, Scalar),
    /// A whole number over the axes.
    Expression(Expression, Scalar),
    Value(f64, Scalar),
    TensorMap(MapDescription),
}

/// The type of a parameter that is a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scalar {
    I32,
    U32,
    I64,
    U64,
    F32,
    F64,
}

impl Scalar {
    pub fn encode_integer(self, value: i64) -> Result<Vec<u8>, String> {
        let wrong = |what: &str| format!("{value} does not fit {what}");
        Ok(match self {
            Scalar::I32 => i32::try_from(value)
                .map_err(|_| wrong("i32"))?
                .to_le_bytes()
                .to_vec(),
            Scalar::U32 => u32::try_from(value)
                .map_err(|_| wrong("u32"))?
                .to_le_bytes()
                .to_vec(),
            Scalar::I64 => value.to_le_bytes().to_vec(),
            Scalar::U64 => u64::try_from(value)
                .map_err(|_| wrong("u64"))?
                .to_le_bytes()
                .to_vec(),
            Scalar::F32 => (value as f32).to_le_bytes().to_vec(),
            Scalar::F64 => (value as f64).to_le_bytes().to_vec(),
        })
    }

    /// A number that need not be whole, unless the type is.
    pub fn encode(self, value: f64) -> Result<Vec<u8>, String> {
        // Whole numbers up to here are exact.
        const EXACT: f64 = 9_007_199_254_740_992.0;
        match self {
            Scalar::F32 if value.is_finite() && (value as f32).is_infinite() => {
                Err(format!("{value} does not fit f32"))
            }
            Scalar::F32 => Ok((value as f32).to_le_bytes().to_vec()),
            Scalar::F64 => Ok(value.to_le_bytes().to_vec()),
            _ if value.fract() == 0.0 && value.abs() <= EXACT => self.encode_integer(value as i64),
            _ => Err(format!("{value} is not a whole number, as its type is")),
        }
    }
}

/// What the code is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Code {
    Ptx(String),
    Cubin(Vec<u8>),
}

/// A description with everything it names.
pub struct Kernel {
    pub description: Description,
    pub description_sha256: String,
    pub code: Code,
    pub code_sha256: String,
}

impl Description {
    pub fn parse(text: &str) -> Result<Self, String> {
        let description: Self = serde_json::from_str(text).map_err(|error| error.to_string())?;
        description.check()?;
        Ok(description)
    }

    /// What can be said without a problem.
    fn check(&self) -> Result<(), String> {
        if self.kernel_version != VERSION {
            let version = self.kernel_version;
            return Err(format!(
                "kernel_version is {version}, and this program reads {VERSION}"
            ));
        }
        let symbol = |c: char| c.is_ascii_alphanumeric() || "_$".contains(c);
        if self.entry.is_empty() || self.entry.len() > 4096 || !self.entry.chars().all(symbol) {
            let entry: String = self.entry.chars().take(100).collect();
            return Err(format!(
                "entry is '{entry}': expected the symbol of a kernel"
            ));
        }
        for (name, empty) in [
            ("ops", self.ops.is_empty()),
            ("dtypes", self.dtypes.is_empty()),
        ] {
            if empty {
                return Err(format!("{name} is empty: name at least one"));
            }
        }
        for (name, sizes, least) in [
            ("grid", &self.grid, 1),
            ("block", &self.block, 1),
            ("cluster", &self.cluster, 0),
        ] {
            if !(least..=3).contains(&sizes.len()) {
                let count = sizes.len();
                return Err(format!("{name} has {count} sizes: expected one to three"));
            }
        }
        if self.arguments.len() > ARGUMENTS_MAX {
            let count = self.arguments.len();
            return Err(format!(
                "{count} arguments: at most {ARGUMENTS_MAX} are passed"
            ));
        }
        if let Some((axis, _)) = self.multiples_of.iter().find(|(_, of)| **of == 0) {
            return Err(format!("multiples_of: '{axis}' is to be a multiple of 0"));
        }
        let parts: Vec<Component> = Path::new(&self.code).components().collect();
        let inside = |part: &Component| matches!(part, Component::Normal(_) | Component::CurDir);
        if parts.is_empty() || !parts.iter().all(inside) {
            return Err(format!(
                "code is '{}': expected a file beside this one, or in a folder below it",
                self.code
            ));
        }
        Ok(())
    }
}

impl Kernel {
    /// Reads a description and the code that it names.
    pub fn read(path: &Path) -> Result<Self, DescriptionError> {
        let named = path.display().to_string();
        let bytes = read(path, FILE_BYTES_MAX)?;
        let format = |error: String| DescriptionError::Format {
            path: named.clone(),
            error,
        };
        let text = std::str::from_utf8(&bytes).map_err(|error| format(error.to_string()))?;
        let description = Description::parse(text).map_err(format)?;
        let invalid = |reason: String| DescriptionError::Invalid {
            path: named.clone(),
            reason,
        };
        let file = beside(path, &description.code)?;
        let code = read(&file, CODE_BYTES_MAX)?;
        Ok(Self {
            description_sha256: sha256(&bytes),
            code_sha256: sha256(&code),
            code: code_of(code)
                .map_err(|reason| invalid(format!("code is '{}', {reason}", description.code)))?,
            description,
        })
    }
}

/// The code that a description names, whether or not the rest of it is sound; for whoever watches files.
pub fn code_path(path: &Path) -> Option<PathBuf> {
    let bytes = read(path, FILE_BYTES_MAX).ok()?;
    let file: serde_json::Value = serde_json::from_slice(&bytes).ok()?;
    let code = file.get("code")?.as_str()?;
    Some(path.parent().unwrap_or(Path::new("")).join(code))
}

/// The file of that name in the folder of `path`; links do not lead out of it.
fn beside(path: &Path, code: &str) -> Result<PathBuf, DescriptionError> {
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let real = |path: &Path| {
        path.canonicalize()
            .map_err(|error| DescriptionError::Unreadable {
                path: path.display().to_string(),
                error: error.to_string(),
            })
    };
    let (folder, file) = (real(folder)?, real(&folder.join(code))?);
    if !file.starts_with(&folder) {
        return Err(DescriptionError::Invalid {
            path: path.display().to_string(),
            reason: format!("code is '{code}', a link that leads out of its folder"),
        });
    }
    Ok(file)
}

fn read(path: &Path, most: u64) -> Result<Vec<u8>, DescriptionError> {
    workspace::read(path, most).map_err(|error| DescriptionError::Unreadable {
        path: path.display().to_string(),
        error: error.to_string(),
    })
}

fn code_of(bytes: Vec<u8>) -> Result<Code, String> {
    if bytes.starts_with(ELF) {
        return Ok(Code::Cubin(bytes));
    }
    let neither = "which is neither PTX nor a cubin".to_owned();
    let text = String::from_utf8(bytes).map_err(|_| neither.clone())?;
    let is_version = |line: &str| line.trim_start().starts_with(".version");
    match text.lines().any(is_version) && !text.contains('\0') {
        true => Ok(Code::Ptx(text)),
        false => Err(neither),
    }
}

fn sha256(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{json, Value};
    use std::fs;

    const PTX: &str = ".version 8.0\n.target sm_90a\n";

    fn sound() -> Value {
        json!({
            "kernel_version": 1,
            "code": "kernel.ptx",
            "entry": "rmsnorm",
            "ops": ["rmsnorm_fwd"],
            "dtypes": ["bf16"],
            "grid": ["m"],
            "block": [256],
            "arguments": [
                {"tensor": "x"},
                {"axis": ["epsilon", "f32"]},
                {"expression": ["m * 2", "i32"]},
                {"value": [0.5, "f32"]},
                {"tensor_map": {"tensor": "x", "box": [8, 64], "swizzle": "128B"}},
            ],
        })
    }

    fn with(field: &str, value: Value) -> Result<Description, String> {
        let mut file = sound();
        file[field] = value;
        Description::parse(&file.to_string())
    }

    #[test]
    fn a_sound_file_is_read() {
        let description = Description::parse(&sound().to_string()).unwrap();
        assert_eq!(description.arguments.len(), 5);
        assert_eq!(description.dtypes, [DType::Bf16]);
        assert!(description.cluster.is_empty() && description.shared_bytes.is_none());
    }

    #[test]
    fn what_is_wrong_is_named() {
        let many = vec![json!({"tensor": "x"}); 65];
        for (field, value, reason) in [
            (
                "kernel_version",
                json!(2),
                "kernel_version is 2, and this program reads 1",
            ),
            ("entry", json!("a b"), "entry is 'a b': expected the symbol"),
            ("entry", json!(""), "expected the symbol"),
            ("ops", json!([]), "ops is empty"),
            ("dtypes", json!([]), "dtypes is empty"),
            ("dtypes", json!(["f12"]), "unknown variant `f12`"),
            ("grid", json!([]), "grid has 0 sizes"),
            ("block", json!([1, 1, 1, 1]), "block has 4 sizes"),
            ("grid", json!(["m +"]), "'m +': expected a number"),
            (
                "grid",
                json!([-1]),
                "expected a whole number or an expression",
            ),
            (
                "grid",
                json!([1.5]),
                "expected a whole number or an expression",
            ),
            ("shared_bytes", json!("1 /"), "'1 /': expected"),
            ("arguments", json!(many), "65 arguments: at most 64"),
            (
                "arguments",
                json!([{"pointer": "x"}]),
                "unknown variant `pointer`",
            ),
            (
                "arguments",
                json!([{"axis": ["m", "i8"]}]),
                "unknown variant `i8`",
            ),
            (
                "arguments",
                json!([{"tensor_map": {"tensor": "x", "box": [1], "fill": 0}}]),
                "unknown field `fill`",
            ),
            (
                "multiples_of",
                json!({"n": 0}),
                "'n' is to be a multiple of 0",
            ),
            (
                "code",
                json!("../kernel.ptx"),
                "expected a file beside this one",
            ),
            (
                "code",
                json!("/tmp/kernel.ptx"),
                "expected a file beside this one",
            ),
            ("code", json!(""), "expected a file beside this one"),
            ("threads", json!(1), "unknown field `threads`"),
        ] {
            let error = with(field, value).unwrap_err();
            assert!(error.contains(reason), "{field}: {error}");
        }
        let twice = sound().to_string().replacen('{', "{\"entry\": \"a\", ", 1);
        assert!(Description::parse(&twice)
            .unwrap_err()
            .contains("duplicate field"));
    }

    #[test]
    fn numbers_are_passed_only_if_they_fit() {
        assert_eq!(Scalar::I32.encode_integer(-1), Ok(vec![255; 4]));
        assert_eq!(Scalar::F32.encode(0.5), Ok(0.5f32.to_le_bytes().to_vec()));
        assert_eq!(Scalar::U64.encode(3.0), Ok(3u64.to_le_bytes().to_vec()));
        for (scalar, value) in [
            (Scalar::I32, 3e9),
            (Scalar::U32, -1.0),
            (Scalar::U64, -1.0),
            (Scalar::I64, 0.5),
            (Scalar::I64, 1e300),
            (Scalar::I64, f64::NAN),
            (Scalar::F32, 1e39),
        ] {
            assert!(scalar.encode(value).is_err(), "{scalar:?} {value}");
        }
    }

    #[test]
    fn code_stays_in_the_folder_and_is_what_it_says() {
        let folder = tempfile::TempDir::new().unwrap();
        let place = |name: &str| folder.path().join("kernel").join(name);
        fs::create_dir(folder.path().join("kernel")).unwrap();
        let read = |file: &Value| {
            fs::write(place("kernel.json"), file.to_string()).unwrap();
            Kernel::read(&place("kernel.json")).map_err(|error| error.to_string())
        };
        let missing = read(&sound()).err().unwrap();
        assert!(
            missing.contains("cannot read") && missing.contains("kernel.ptx"),
            "{missing}"
        );
        fs::write(place("kernel.ptx"), PTX).unwrap();
        let kernel = read(&sound()).ok().unwrap();
        assert_eq!(kernel.code, Code::Ptx(PTX.into()));
        assert_eq!(kernel.code_sha256.len(), 64);
        fs::write(place("kernel.ptx"), b"\x7fELF...").unwrap();
        assert!(matches!(read(&sound()).ok().unwrap().code, Code::Cubin(_)));
        for text in [&b"int main() {}"[..], b"\xff\xfe", b"", b".version\0"] {
            fs::write(place("kernel.ptx"), text).unwrap();
            let error = read(&sound()).err().unwrap();
            assert!(
                error.contains("code is 'kernel.ptx', which is neither PTX nor a cubin"),
                "{error}"
            );
        }
        fs::write(folder.path().join("outside.ptx"), PTX).unwrap();
        std::os::unix::fs::symlink("../outside.ptx", place("link.ptx")).unwrap();
        let mut file = sound();
        file["code"] = json!("link.ptx");
        let error = read(&file).err().unwrap();
        assert!(
            error.contains("a link that leads out of its folder"),
            "{error}"
        );
        file["code"] = json!(".");
        let error = read(&file).err().unwrap();
        assert!(error.contains("it is not a file"), "{error}");
        let large = " ".repeat(FILE_BYTES_MAX as usize + 1);
        fs::write(place("kernel.json"), large).unwrap();
        let error = Kernel::read(&place("kernel.json"))
            .err()
            .unwrap()
            .to_string();
        assert!(error.contains("at most 65536 bytes are read"), "{error}");
        fs::write(place("kernel.json"), "[]").unwrap();
        let error = Kernel::read(&place("kernel.json"))
            .err()
            .unwrap()
            .to_string();
        assert!(error.contains("does not describe a kernel"), "{error}");
    }
}
