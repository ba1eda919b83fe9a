//! Checks shared by the tests of all problems.

use std::collections::BTreeSet;

use contender::{Problem, Workload};
use tensor::{Inputs, TensorSpec};

/// Every element that must be written is in exactly one unit's slices, and nothing else is.
pub fn assert_units_cover_outputs_once(problem: &impl Problem) {
    let (specs, inputs) = (problem.tensors(), Inputs::new(problem.tensors(), 7));
    let mut seen: Vec<Vec<u32>> = specs.iter().map(|spec| vec![0; spec.elements()]).collect();
    for unit in 0..problem.units() {
        for slice in problem.oracle(&inputs, unit) {
            for count in &mut seen[slice.tensor][slice.start..][..slice.values.len()] {
                *count += 1;
            }
        }
    }
    for (spec, seen) in specs.iter().zip(seen) {
        let mut expected = vec![0; spec.elements()];
        if spec.role.is_written() {
            for range in spec.written_ranges() {
                expected[range].fill(1);
            }
        }
        assert!(seen == expected, "{}: {}", problem.op(), spec.name);
    }
}

/// No two workloads of a suite have the same name, and all state their source.
pub fn assert_named_once<'a>(
    suite: impl ToString,
    workloads: impl IntoIterator<Item = &'a Workload>,
) {
    let mut names = BTreeSet::new();
    for workload in workloads {
        assert!(names.insert(&workload.name), "{} twice", workload.name);
        assert_eq!(workload.suite, suite.to_string());
        assert!(!workload.provenance.is_empty(), "{}", workload.name);
    }
    assert!(!names.is_empty(), "{} is empty", suite.to_string());
}

/// Honest values are representable in their types, and within `limit` (in rounding errors of the
/// slice's largest value) of the oracle's; exact outputs equal the oracle's.
pub fn assert_honest_is_near(problem: &impl Problem, units: &[usize], limit: f64) {
    assert_near(problem, &Inputs::new(problem.tensors(), 3), units, limit);
}

/// The same for every other kind of inputs.
pub fn assert_honest_on_families(problem: &impl Problem, units: &[usize], limit: f64) {
    let families = problem.families();
    assert!(!families.is_empty(), "{}", problem.op());
    for (seed, family) in families.iter().enumerate() {
        let specs = problem.tensors().iter().zip(&family.tensors);
        for (own, other) in specs {
            let facts = |spec: &TensorSpec| (spec.name, spec.dtype, spec.shape.clone(), spec.role);
            assert_eq!(facts(own), facts(other));
        }
        let inputs = Inputs::new(&family.tensors, 100 + seed as u64);
        assert_near(problem, &inputs, units, limit);
    }
}

fn assert_near(problem: &impl Problem, inputs: &Inputs, units: &[usize], limit: f64) {
    for &unit in units {
        let (oracle, honest) = (problem.oracle(inputs, unit), problem.honest(inputs, unit));
        assert_eq!(oracle.len(), honest.len());
        for (right, rounded) in oracle.iter().zip(&honest) {
            let dtype = problem.tensors()[right.tensor].dtype;
            let place = |slice: &contender::Slice| (slice.tensor, slice.start, slice.values.len());
            assert_eq!(place(right), place(rounded));
            let scale = right.values.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
            let exact = problem.is_exact(right.tensor);
            let limit = if exact {
                0.0
            } else {
                limit * dtype.unit_roundoff() * scale
            };
            for (right, near) in right.values.iter().zip(&rounded.values) {
                assert_eq!(dtype.round(*near), *near);
                let op = problem.op();
                assert!(
                    (right - near).abs() <= limit,
                    "{op} {dtype}: {right} and {near}"
                );
            }
        }
    }
}
