//! What the tests of all problems ask.

use contender::Problem;
use tensor::Inputs;

/// Every element that must be written is in one unit's slices, and nothing else is.
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
