//! Races contenders on an operation that the user brings: a problem file says what to compute, an oracle what is
//! correct, and nobody else is in the race.

use std::process::ExitCode;
use std::sync::Arc;

use cli::{Bench, Choices, UsageError};
use contender::{Shape, Suite};
use guest::OracleSource;
use own::{OwnProblem, ProblemFile, Seat, SUITE};

fn main() -> ExitCode {
    cli::run_own(Bench {
        name: "bench_own",
        about: "Races your contenders on your own operation, checked against your own oracle",
        arch: env!("HEAD_TO_HEAD_ARCH"),
        suites: &[Suite {
            name: SUITE,
            about: "the shapes of the problem file",
        }],
        shortcuts: &[],
        dtypes: &[],
        problems,
        contenders: |_| Vec::new(),
    })
}

/// A shape, and who gave it.
struct Given {
    shape: Shape,
    suite: String,
    /// Of a workload file.
    workload: Option<record::GivenWorkload>,
}

fn problems(choices: &Choices) -> Result<Vec<OwnProblem>, UsageError> {
    let Some(own) = &choices.own else {
        return Err(UsageError::new(
            "name an operation with --problem and --oracle",
        ));
    };
    let (file, digest) = ProblemFile::read(&own.problem).map_err(UsageError::new)?;
    let source = OracleSource::new(&own.oracle).map_err(UsageError::new)?;
    let provenance = format!(
        "a problem file of sha256 {}, an oracle of sha256 {}",
        &digest[..12],
        &source.sha256[..12]
    );
    let (file, seat) = (Arc::new(file), Arc::new(Seat::new(source, own.patience)));
    let dtypes = match choices.dtypes.is_empty() {
        true => file.dtypes.clone(),
        false => choices.dtypes.clone(),
    };
    let mut problems = Vec::new();
    for given in shapes(choices, &file)? {
        for dtype in &dtypes {
            let seat = Some(seat.clone());
            let problem = OwnProblem::new(&file, &given.shape, *dtype, seat, &provenance);
            let mut problem = problem
                .map_err(|reason| UsageError(format!("{}: {reason}", own.problem.display())))?;
            let workload = problem.workload_mut();
            workload.suite.clone_from(&given.suite);
            if let Some(named) = &given.workload {
                workload.name.clone_from(&named.name);
                workload.only_op.clone_from(&named.op);
                workload.weight = named.weight;
                workload.provenance = format!("{}; {provenance}", named.provenance);
            }
            problems.push(problem);
        }
    }
    Ok(problems)
}

fn shapes(choices: &Choices, file: &ProblemFile) -> Result<Vec<Given>, UsageError> {
    if let Some(workloads) = &choices.given {
        let given = workloads.workloads.iter().map(|workload| Given {
            shape: workload.shape.clone(),
            suite: workloads.suite.clone(),
            workload: Some(workload.clone()),
        });
        return Ok(given.collect());
    }
    let plain = |shape, suite: &str| Given {
        shape,
        suite: suite.to_owned(),
        workload: None,
    };
    if choices.configs.is_empty() {
        return Ok(file.shapes().map(|shape| plain(shape, SUITE)).collect());
    }
    let of_sizes = |sizes: &Vec<usize>| {
        let shape = OwnProblem::shape(file, sizes);
        let shape = shape.map_err(|reason| UsageError::of_shape(sizes, &reason))?;
        Ok(plain(shape, "custom"))
    };
    choices.configs.iter().map(of_sizes).collect()
}
