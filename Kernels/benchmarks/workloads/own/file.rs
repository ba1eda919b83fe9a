//! The file that says what an operation is: axes, shapes, tensors, cost, tolerance.

use std::collections::BTreeSet;
use std::path::Path;

use contender::Shape;
use kernel_file::Expression;
use numeric::DType;
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
use tensor::Role;

use crate::inputs::{Kind, Numbers};
use crate::unique::Unique;

/// The version that this program reads.
const VERSION: u32 = 1;
const FILE_BYTES_MAX: u64 = 1 << 20;
const AXES_MAX: usize = 16;
const SHAPES_MAX: usize = 10_000;
const TENSORS_MAX: usize = 32;
pub const RANK_MAX: usize = 8;
const NAME_MAX: usize = 64;
/// The size of an element of the type that names the problem.
pub const ELEMENT_BYTES: &str = "element_bytes";
/// Words of expressions, which no axis is called.
const WORDS: [&str; 5] = ["ceil_div", "min", "max", "multiprocessors", ELEMENT_BYTES];

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{origin} is not a problem file: {reason}")]
pub struct BadProblem {
    pub origin: String,
    pub reason: String,
}

/// `problem.json`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProblemFile {
    pub problem_version: u32,
    /// The operation's name.
    pub op: String,
    /// Whole numbers that define a shape, in the order of `--configs`.
    pub axes: Vec<String>,
    /// Every axis of every shape that is raced.
    pub shapes: Vec<Unique<u64>>,
    /// Other numbers of the operation, such as epsilon.
    #[serde(default)]
    pub numbers: Unique<f64>,
    /// Types that the operation is raced in.
    pub dtypes: Vec<DType>,
    pub tensors: Vec<TensorFile>,
    /// Parts of the outputs that can be checked separately; 1 without.
    pub units: Option<Expression>,
    pub cost: CostFile,
    /// Of every output that has none of its own.
    pub tolerance: Option<ToleranceFile>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TensorFile {
    pub name: String,
    pub role: RoleWord,
    pub dtype: TypeWord,
    pub shape: Vec<Expression>,
    /// Uniform in [-1, 1] without.
    pub inputs: Option<Numbers>,
    /// Other kinds of inputs, on which a contender must be right too.
    #[serde(default)]
    pub families: Vec<Kind>,
    pub tolerance: Option<ToleranceFile>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RoleWord {
    Input,
    Output,
    InOut,
}

impl From<RoleWord> for Role {
    fn from(word: RoleWord) -> Self {
        match word {
            RoleWord::Input => Role::Input,
            RoleWord::Output => Role::Output,
            RoleWord::InOut => Role::InOut,
        }
    }
}

/// A type, or that of the problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum TypeWord {
    Same,
    Is(DType),
}

impl TryFrom<String> for TypeWord {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match &*text {
            "same" => Ok(TypeWord::Same),
            text => text.parse().map(TypeWord::Is).map_err(|_| {
                let text: String = text.chars().take(NAME_MAX).collect();
                format!("unknown dtype '{text}'; use same, or one of {}", known())
            }),
        }
    }
}

/// The work that every implementation must do.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CostFile {
    pub operations: Expression,
    /// Every input once without.
    pub read_bytes: Option<Expression>,
    /// Every output once without.
    pub written_bytes: Option<Expression>,
    /// The type whose tensor-core peak is the compute roof; plain f32 arithmetic without.
    pub tensor_cores: Option<DType>,
}

/// How far from the oracle an element may be: the absolute error, or the relative one times the largest value of its
/// unit, whichever is more.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToleranceFile {
    #[serde(default)]
    pub relative: f64,
    /// Relative too, in roundings of the output's type.
    #[serde(default)]
    pub roundings: f64,
    #[serde(default)]
    pub absolute: f64,
}

/// Types that a tensor may have: an element of these is one number.
const TYPES: [DType; 6] = [
    DType::F32,
    DType::F16,
    DType::Bf16,
    DType::F8E4M3,
    DType::I32,
    DType::I64,
];

fn known() -> String {
    TYPES.map(|dtype| dtype.to_string()).join(", ")
}

fn check_type(dtype: DType) -> Result<(), String> {
    match TYPES.contains(&dtype) {
        true => Ok(()),
        false => Err(format!(
            "elements of {dtype} are not numbers of their own; use one of {}",
            known()
        )),
    }
}

impl ProblemFile {
    /// The shapes that are raced unless others are given.
    pub fn shapes(&self) -> impl Iterator<Item = Shape> + '_ {
        self.shapes.iter().map(|shape| {
            let sizes = shape.0.iter();
            sizes
                .map(|(axis, size)| (axis.clone(), Value::from(*size)))
                .collect()
        })
    }

    /// The file and its digest.
    pub fn read(path: &Path) -> Result<(Self, String), BadProblem> {
        let origin = path.display().to_string();
        let bad = |reason: String| BadProblem {
            origin: origin.clone(),
            reason,
        };
        let bytes =
            workspace::read(path, FILE_BYTES_MAX).map_err(|error| bad(error.to_string()))?;
        let text = std::str::from_utf8(&bytes).map_err(|error| bad(error.to_string()))?;
        let digest = Sha256::digest(&bytes);
        let digest = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok((Self::parse(text).map_err(bad)?, digest))
    }

    /// Its text; the error is a sentence without the file's name.
    pub fn parse(text: &str) -> Result<Self, String> {
        record::check_text(text).map_err(|error| error.to_string())?;
        let file: Self = serde_json::from_str(text).map_err(|error| error.to_string())?;
        file.check()?;
        Ok(file)
    }

    /// What can be said without a shape.
    fn check(&self) -> Result<(), String> {
        if self.problem_version != VERSION {
            let version = self.problem_version;
            return Err(format!(
                "problem_version is {version}, and this program reads {VERSION}"
            ));
        }
        check_name("op", &self.op)?;
        check_count("axes", self.axes.len(), AXES_MAX)?;
        check_count("shapes", self.shapes.len(), SHAPES_MAX)?;
        check_count("dtypes", self.dtypes.len(), TYPES.len())?;
        check_count("tensors", self.tensors.len(), TENSORS_MAX)?;
        let numbers = self.numbers.0.iter().map(|(name, _)| name);
        let mut taken: BTreeSet<&str> = WORDS.into_iter().collect();
        for name in self.axes.iter().chain(numbers) {
            check_name("axis or number", name)?;
            if !taken.insert(name) {
                return Err(format!("'{name}' is the name of something else already"));
            }
        }
        for (name, number) in &self.numbers.0 {
            if !number.is_finite() {
                return Err(format!("the number '{name}' is not finite"));
            }
        }
        let mut dtypes = BTreeSet::new();
        for dtype in &self.dtypes {
            check_type(*dtype)?;
            if !dtypes.insert(dtype) {
                return Err(format!("dtypes has {dtype} twice"));
            }
        }
        let mut shapes = BTreeSet::new();
        for shape in &self.shapes {
            let sizes: Vec<_> = self.axes.iter().map(|axis| shape.get(axis)).collect();
            if !shapes.insert(sizes) {
                return Err("shapes has one of them twice".into());
            }
        }
        self.check_tensors()?;
        if let Some(dtype) = self.cost.tensor_cores {
            check_type(dtype)?;
        }
        self.tolerance.iter().try_for_each(ToleranceFile::check)
    }

    fn check_tensors(&self) -> Result<(), String> {
        let mut names = BTreeSet::new();
        for tensor in &self.tensors {
            let name = &tensor.name;
            check_name("tensor", name)?;
            if !names.insert(name) {
                return Err(format!("two tensors are called '{name}'"));
            }
            let told = |reason: String| format!("tensor '{name}': {reason}");
            if let TypeWord::Is(dtype) = tensor.dtype {
                check_type(dtype).map_err(told)?;
            }
            check_count("its shape", tensor.shape.len(), RANK_MAX).map_err(told)?;
            tensor.check_inputs().map_err(told)?;
            if let Some(tolerance) = &tensor.tolerance {
                if tensor.role == RoleWord::Input {
                    return Err(told("an input has no tolerance".into()));
                }
                tolerance.check().map_err(told)?;
            }
        }
        match self.tensors.iter().any(|it| it.role != RoleWord::Input) {
            true => Ok(()),
            false => Err("no tensor is an output".into()),
        }
    }
}

impl TensorFile {
    fn check_inputs(&self) -> Result<(), String> {
        if self.role == RoleWord::Output && (self.inputs.is_some() || !self.families.is_empty()) {
            return Err("an output has no inputs or families".into());
        }
        if let Some(numbers) = &self.inputs {
            numbers.check()?;
        }
        let kinds: BTreeSet<&Kind> = self.families.iter().collect();
        if kinds.len() < self.families.len() {
            return Err("families has a kind twice".into());
        }
        match (&self.inputs, self.families.is_empty()) {
            (Some(Numbers::Integers(_)), false) => {
                Err("integers have no families; only uniform numbers do".into())
            }
            _ => Ok(()),
        }
    }
}

impl ToleranceFile {
    fn check(&self) -> Result<(), String> {
        let all = [self.relative, self.roundings, self.absolute];
        if !all
            .iter()
            .all(|value| value.is_finite() && (0.0..=1e30).contains(value))
        {
            return Err("a tolerance must be a number from 0 to 1e30".into());
        }
        match all.iter().any(|value| *value > 0.0) {
            true => Ok(()),
            false => Err(
                "a tolerance of nothing; give relative, roundings or absolute above 0, and integers need none".into(),
            ),
        }
    }
}

fn check_name(what: &str, name: &str) -> Result<(), String> {
    let letter = |c: char| c.is_ascii_alphabetic() || c == '_';
    let fits = name.len() <= NAME_MAX
        && name.starts_with(letter)
        && name.chars().all(|c| letter(c) || c.is_ascii_digit());
    match fits {
        true => Ok(()),
        false => {
            let name: String = name
                .chars()
                .filter(|c| record::is_plain(*c))
                .take(NAME_MAX)
                .collect();
            Err(format!(
                "'{name}' is no name for an {what}: use 1 to {NAME_MAX} letters, digits and _, not a digit first"
            ))
        }
    }
}

fn check_count(what: &str, count: usize, most: usize) -> Result<(), String> {
    match count {
        0 => Err(format!("{what}: there are none")),
        count if count > most => Err(format!("{what}: {count} are more than {most}")),
        _ => Ok(()),
    }
}
