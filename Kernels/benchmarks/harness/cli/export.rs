//! `--export`: the selected workloads as a workload file.

use std::collections::BTreeSet;

use record::{GivenWorkload, WorkloadFile, WORKLOADS_VERSION};

use crate::selection::Selection;
use crate::UsageError;

/// One suite, under a name that tells it from the original.
pub fn workload_file(bench: &str, selection: &Selection) -> Result<WorkloadFile, UsageError> {
    let mut seen = BTreeSet::new();
    let (mut suites, mut workloads) = (BTreeSet::new(), Vec::new());
    for problem in &selection.problems {
        let (op, workload) = (problem.op(), problem.workload());
        if workload.shape.is_empty() {
            return Err(UsageError(format!("{bench} has no workload files")));
        }
        suites.insert(&workload.suite);
        // One for each type of elements.
        if seen.insert((op, &workload.name)) {
            workloads.push(GivenWorkload {
                name: workload.name.clone(),
                op: Some(op.to_owned()),
                shape: workload.shape.clone(),
                provenance: workload.provenance.clone(),
                weight: workload.weight,
            });
        }
    }
    let names: Vec<&str> = suites.into_iter().map(String::as_str).collect();
    let [suite] = names[..] else {
        let names = names.join(", ");
        return Err(UsageError(format!(
            "--export writes one suite; choose one of {names}"
        )));
    };
    Ok(WorkloadFile {
        workloads_version: WORKLOADS_VERSION,
        bench: bench.to_owned(),
        suite: format!("my_{suite}"),
        workloads,
    })
}
