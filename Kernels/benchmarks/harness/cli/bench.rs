//! What a benchmark declares, and what its user can choose.

use std::fmt::Display;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use contender::{Contender, DeviceKind, Entry, Problem, Suite};
use guest::Source;
use numeric::{DType, UnknownDType};
use record::{GivenWorkload, WorkloadFile};

use crate::UsageError;

/// A benchmark: suites of problems, and the contenders that solve them.
///
/// The functions run in both the supervisor and the worker: they must not touch a device.
pub struct Bench<P: Problem> {
    pub name: &'static str,
    pub about: &'static str,
    /// `sm_90a`, ..., or `none` for a build without CUDA; determines the default device.
    pub arch: &'static str,
    pub suites: &'static [Suite],
    /// Suite shortcuts that only this benchmark has.
    pub shortcuts: &'static [Shortcut],
    /// The types of activations that a suite run measures it in.
    pub dtypes: &'static [DType],
    /// The problems for the user's choices, in the order they are measured.
    pub problems: fn(&Choices) -> Result<Vec<P>, UsageError>,
    /// The contenders for the chosen device. The first baseline is the default comparison.
    pub contenders: fn(&Choices) -> Vec<Box<dyn Contender<P>>>,
}

/// `--quack-suite` for `--suite quack`; `flag` has no dashes.
pub struct Shortcut {
    pub flag: &'static str,
    pub suite: &'static str,
}

/// What the command line says about problems.
#[derive(Clone, Debug, PartialEq)]
pub struct Choices {
    pub device: DeviceKind,
    /// Names from [`Bench::suites`]; empty if `configs` or `given` are there instead.
    pub suites: Vec<String>,
    /// Custom shapes: `[[4096, 7168]]` for `--configs 4096x7168`.
    pub configs: Vec<Vec<usize>>,
    /// Shapes of a workload file.
    pub given: Option<WorkloadFile>,
    pub dtypes: Vec<DType>,
    pub weight_dtype: WeightDType,
    pub passes: Passes,
    /// Draws the shapes of suites that have none of their own.
    pub shapes_seed: u64,
    /// Draws what a problem has besides numbers, such as page tables: other in every run.
    pub metadata_seed: u64,
    /// An operation that the user brings, where the bench takes one.
    pub own: Option<OwnOperation>,
}

/// The files of an operation that the user brings.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnOperation {
    pub problem: PathBuf,
    pub oracle: Source,
    /// How long the oracle may be silent.
    pub patience: Duration,
}

impl Choices {
    /// The chosen suites as the family's own type.
    pub fn suites_of<S: FromStr<Err: Display>>(&self) -> Result<Vec<S>, UsageError> {
        let suites = self.suites.iter().map(|name| name.parse());
        suites.collect::<Result<_, _>>().map_err(UsageError::new)
    }

    /// Those of the chosen suites, of the shapes given by hand, or of a workload file.
    pub fn workloads<S: FromStr<Err: Display>, W: Entry>(
        &self,
        of_suite: impl Fn(S) -> Vec<W>,
        of_sizes: impl Fn(&[usize]) -> Result<W, UsageError>,
    ) -> Result<Vec<W>, UsageError> {
        let suites = self.suites_of()?.into_iter().flat_map(of_suite).map(Ok);
        // The limits of workload files hold for shapes given by hand too.
        let of_config = |sizes: &Vec<usize>| {
            let entry = of_sizes(sizes)?;
            match W::from_file(&entry.to_file(), None) {
                Ok(_) => Ok(entry),
                Err(reason) => Err(UsageError::of_shape(
                    sizes,
                    &format!("cannot be computed: {reason}"),
                )),
            }
        };
        let configs = self.configs.iter().map(of_config);
        let given = self.given()?.into_iter().map(Ok);
        let described = |entry: Result<W, UsageError>| {
            let mut entry = entry?;
            entry.workload().shape = entry.to_file();
            Ok(entry)
        };
        suites.chain(configs).chain(given).map(described).collect()
    }

    /// Those of the workload file, if there is one.
    pub fn given<W: Entry>(&self) -> Result<Vec<W>, UsageError> {
        let all = self.given.iter();
        let all = all.flat_map(|file| file.workloads.iter().map(|given| (&file.suite, given)));
        let entry = |(suite, given): (&String, &GivenWorkload)| {
            let entry = W::from_file(&given.shape, given.op.as_deref());
            let refuse = |reason| UsageError(format!("workload '{}': {reason}", given.name));
            let mut entry = entry.map_err(refuse)?;
            let workload = entry.workload();
            workload.name.clone_from(&given.name);
            workload.suite.clone_from(suite);
            workload.provenance.clone_from(&given.provenance);
            workload.only_op.clone_from(&given.op);
            workload.weight = given.weight;
            Ok(entry)
        };
        all.map(entry).collect()
    }

    /// A problem of each workload in each chosen type.
    pub fn problems<W, P, E: Display>(
        &self,
        workloads: Vec<W>,
        problem: impl Fn(&W, DType) -> Result<P, E>,
    ) -> Result<Vec<P>, UsageError> {
        let each = workloads.iter().flat_map(|workload| {
            let types = self.dtypes.iter();
            types.map(|&dtype| problem(workload, dtype).map_err(UsageError::new))
        });
        each.collect()
    }
}

/// The weight type, relative to the activation type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WeightDType {
    Same,
    Is(DType),
}

impl WeightDType {
    pub fn resolve(self, activations: DType) -> DType {
        match self {
            WeightDType::Same => activations,
            WeightDType::Is(dtype) => dtype,
        }
    }
}

impl FromStr for WeightDType {
    type Err = UnknownDType;

    fn from_str(text: &str) -> Result<Self, UnknownDType> {
        match text {
            "same" => Ok(WeightDType::Same),
            _ => text.parse().map(WeightDType::Is),
        }
    }
}

impl Display for WeightDType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            WeightDType::Same => f.pad("same"),
            WeightDType::Is(dtype) => dtype.fmt(f),
        }
    }
}

/// Which passes of an operation to measure, each on its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum Passes {
    Fwd,
    Bwd,
    FwdBwd,
}

impl Passes {
    /// Whether an operation of one of the passes is measured.
    pub fn include(self, backward: bool) -> bool {
        if backward {
            self.backward()
        } else {
            self.forward()
        }
    }

    pub fn forward(self) -> bool {
        self != Passes::Bwd
    }

    pub fn backward(self) -> bool {
        self != Passes::Fwd
    }
}
