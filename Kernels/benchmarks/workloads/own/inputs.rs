//! What tensors are filled with: the numbers that are timed, and other kinds on which a contender must be right.

use kernel_file::Expression;
use serde::Deserialize;
use tensor::{Fill, Shaped};
use workloads::kinds::{self, outlier_columns, rising_columns, uneven_rows, uniform};

/// The numbers that are timed.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Numbers {
    /// From low to high, rounded to the tensor's type.
    Uniform([f32; 2]),
    /// Whole ones, from the first and below the second.
    Integers([Expression; 2]),
}

/// Whole numbers beyond are not exact in what inputs are drawn with.
const INTEGER_MAX: i64 = 1 << 24;
/// Larger numbers and their squares would be beyond every type.
const LARGEST: f32 = 1e15;

impl Numbers {
    pub fn check(&self) -> Result<(), String> {
        match self {
            Numbers::Integers(_) => Ok(()),
            Numbers::Uniform([low, high]) => {
                let fits = |number: &f32| number.is_finite() && number.abs() <= LARGEST;
                match low <= high && fits(low) && fits(high) {
                    true => Ok(()),
                    false => Err(format!(
                        "uniform is [{low}, {high}]: expected low and high, within 1e15 of zero"
                    )),
                }
            }
        }
    }

    /// As the harness draws them.
    pub fn fill(&self, value: &dyn Fn(&Expression) -> Result<i64, String>) -> Result<Fill, String> {
        let bounds = match self {
            Numbers::Uniform([low, high]) => return Ok(uniform(*low, *high)),
            Numbers::Integers(bounds) => bounds,
        };
        let (low, below) = (value(&bounds[0])?, value(&bounds[1])?);
        match (low, below) {
            (low, below) if low >= below => Err(format!(
                "integers are from {low} and below {below}: there are none"
            )),
            (0, below) if below <= 1 << 31 => Ok(Fill::Index {
                below: below as u32,
            }),
            (low, below) if low >= -INTEGER_MAX && below <= INTEGER_MAX => {
                Ok(uniform(low as f32, (below - 1) as f32))
            }
            _ => Err(format!(
                "integers are from {low} and below {below}: expected both within 2^24 of zero, or from 0 and below 2^31"
            )),
        }
    }
}

/// Kinds of inputs besides those that are timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Outliers,
    Large,
    UnevenRows,
    Drift,
    LateMaximum,
    Zeros,
    Constant,
}

/// In the order in which they are tried.
pub const KINDS: [Kind; 7] = [
    Kind::Outliers,
    Kind::Large,
    Kind::UnevenRows,
    Kind::Drift,
    Kind::LateMaximum,
    Kind::Zeros,
    Kind::Constant,
];

/// Rows of different scales, one that is constant, one of zeros.
const UNEVEN: [(f32, f32); 5] = [
    (-1.0, 1.0),
    (-16.0, 16.0),
    (-0.05, 0.05),
    (0.75, 0.75),
    (0.0, 0.0),
];
/// The exponential of the largest overflows f32.
const LOGIT: f32 = 110.0;
/// Longer rows repeat.
const COLUMNS_MAX: usize = 1 << 20;

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::Outliers => kinds::OUTLIERS,
            Kind::Large => kinds::LARGE,
            Kind::UnevenRows => kinds::UNEVEN_ROWS,
            Kind::Drift => kinds::DRIFT,
            Kind::LateMaximum => kinds::LATE_MAXIMUM,
            Kind::Zeros => "zeros",
            Kind::Constant => "constant",
        }
    }

    /// For a tensor of rows whose timed numbers are these.
    pub fn fill(self, numbers: Option<&Numbers>, shape: &[usize]) -> Fill {
        let (low, high) = match numbers {
            Some(Numbers::Uniform([low, high])) => (*low, *high),
            _ => (-1.0, 1.0),
        };
        let scale = low.abs().max(high.abs());
        let columns = shape.last().copied().unwrap_or(1).min(COLUMNS_MAX);
        let elements = shape.iter().product();
        match self {
            Kind::Outliers => Shaped::flat(low, high)
                .times(outlier_columns(columns, 32.0))
                .into(),
            Kind::Large => uniform(9.0 * scale, 11.0 * scale),
            Kind::UnevenRows => {
                let ranges = UNEVEN.map(|(low, high)| (low * scale, high * scale));
                uneven_rows(columns, elements, &ranges).into()
            }
            Kind::Drift => Shaped::flat(0.5 * scale, 1.5 * scale)
                .times(rising_columns(columns, -2.0, 2.0))
                .into(),
            Kind::LateMaximum => Shaped::flat(0.98, 1.02)
                .times(rising_columns(columns, -LOGIT, LOGIT))
                .into(),
            Kind::Zeros => uniform(0.0, 0.0),
            Kind::Constant => uniform(0.75 * scale, 0.75 * scale),
        }
    }
}
