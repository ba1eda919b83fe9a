//! A benchmark with the type of its problems erased, so that everything downstream is compiled once
//! rather than once per benchmark.

use std::any::Any;

use contender::{
    Bound, Buffer, Contender, ContenderError, DeviceInfo, Identity, Pinned, Problem, Suite, Support,
};

use crate::{Bench, Choices, DType, Shortcut, UsageError};

/// A problem of any benchmark, and a contender for it.
pub type AnyProblem = dyn Problem;
pub type AnyContender = dyn Contender<AnyProblem>;

pub type Problems = Vec<Box<AnyProblem>>;
pub type Contenders = Vec<Box<AnyContender>>;
type ByChoices<T> = Box<dyn Fn(&Choices) -> T>;

/// [`Bench`] for any type of problem.
pub struct AnyBench {
    pub name: &'static str,
    pub about: &'static str,
    pub arch: &'static str,
    pub suites: &'static [Suite],
    pub shortcuts: &'static [Shortcut],
    pub dtypes: &'static [DType],
    pub problems: ByChoices<Result<Problems, UsageError>>,
    pub contenders: ByChoices<Contenders>,
    /// Whether the user brings the operation.
    pub takes_operation: bool,
}

impl<P: Problem> From<Bench<P>> for AnyBench {
    fn from(bench: Bench<P>) -> Self {
        Self {
            name: bench.name,
            about: bench.about,
            arch: bench.arch,
            suites: bench.suites,
            shortcuts: bench.shortcuts,
            dtypes: bench.dtypes,
            problems: Box::new(move |choices| {
                let problems = (bench.problems)(choices)?.into_iter();
                Ok(problems
                    .map(|problem| -> Box<AnyProblem> { Box::new(problem) })
                    .collect())
            }),
            contenders: Box::new(move |choices| {
                let contenders = (bench.contenders)(choices).into_iter();
                contenders
                    .map(|contender| -> Box<AnyContender> { Box::new(Erased(contender)) })
                    .collect()
            }),
            takes_operation: false,
        }
    }
}

struct Erased<P: Problem>(Box<dyn Contender<P>>);

fn own<P: Problem>(problem: &AnyProblem) -> &P {
    let problem: &dyn Any = problem;
    let own = problem.downcast_ref();
    own.expect("contenders only see problems of their own benchmark")
}

impl<P: Problem> Contender<AnyProblem> for Erased<P> {
    fn identity(&self) -> &Identity {
        self.0.identity()
    }

    fn supports(&self, problem: &AnyProblem, device: &DeviceInfo) -> Support {
        self.0.supports(own(problem), device)
    }

    fn missing(&self, problem: &AnyProblem, arch: &str) -> Option<Vec<String>> {
        self.0.missing(own(problem), arch)
    }

    fn releases(&self) -> Option<Pinned> {
        self.0.releases()
    }

    fn at(&self, release: &str) -> Option<Box<AnyContender>> {
        let at = self.0.at(release)?;
        Some(Box::new(Erased(at)))
    }

    fn plan_name(&self, problem: &AnyProblem, device: &DeviceInfo) -> Option<String> {
        self.0.plan_name(own(problem), device)
    }

    fn write_plan(&self, problem: &AnyProblem) -> Option<String> {
        self.0.write_plan(own(problem))
    }

    fn take_plan(&self, problem: &AnyProblem, plan: &str) {
        self.0.take_plan(own(problem), plan);
    }

    fn bind(
        &self,
        problem: &AnyProblem,
        buffers: &[Buffer],
        device: &DeviceInfo,
    ) -> Result<Box<dyn Bound>, ContenderError> {
        self.0.bind(own(problem), buffers, device)
    }
}
