use contender::Problem;
use numeric::DType;
use reference::attention;
use tensor::Inputs;

use super::{NsaOp, NsaProblem, NsaShape, NsaSuite};
use crate::testing::{assert_honest_on_families, assert_units_cover_outputs_once};

fn problem(op: NsaOp, sizes: &[usize]) -> NsaProblem {
    let (shape, workload) = NsaSuite::custom(NsaShape::from_sizes(sizes).unwrap());
    NsaProblem::new(op, shape, DType::Bf16, workload)
}

const SIZES: [usize; 8] = [2, 9, 4, 2, 16, 4, 3, 9];

#[test]
fn all_blocks_and_a_whole_window_are_dense_causal_attention() {
    for op in [NsaOp::Selected, NsaOp::Sliding] {
        let problem = problem(op, &SIZES);
        let inputs = Inputs::new(problem.tensors(), 5);
        let (token, group, head) = (9 + 6, 1, 3);
        let answers = problem.oracle(&inputs, token * 2 + group);
        let rows = |name| -> Vec<f32> {
            let tensor = inputs.tensor(name);
            let places = (9..=token).map(|key| (key * 2 + group) * 16);
            let rows = places.flat_map(|place| tensor.range(place, 16));
            rows.map(|value| value as f32).collect()
        };
        let query = inputs.tensor("queries").range((token * 4 + head) * 16, 16);
        let (keys, values) = (rows("keys"), rows("values"));
        let right = attention::row(&query, &keys, &values, 0.25, |weight| weight);
        let out = &answers[0].values[(head - 2) * 16..][..16];
        let near = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-12;
        assert!(out.iter().zip(&right.out).all(near), "{op}");
        assert!((answers[1].values[head - 2] - right.lse).abs() < 1e-12);
    }
}

#[test]
fn a_query_before_the_first_whole_block_gets_nothing() {
    let problem = problem(NsaOp::Compressed, &SIZES);
    assert_eq!(problem.statement().tensor("keys").shape, [6, 2, 16]);
    let inputs = Inputs::new(problem.tensors(), 5);
    let values = |token: usize| problem.oracle(&inputs, token * 2).remove(0).values;
    assert!(values(2).iter().all(|value| *value == 0.0));
    // Position 3 ends the first block and sees only that one; in the second sequence, that sequence's.
    let first = inputs.tensor("values").range(3 * 2 * 16, 16);
    assert_eq!(values(9 + 3)[..16], first);
}

#[test]
fn gates_weigh_the_branches() {
    let problem = problem(NsaOp::Gated, &SIZES);
    let inputs = Inputs::new(problem.tensors(), 3);
    let element = 5 * 16 + 7;
    let terms = ["compressed", "selected", "sliding"].map(|branch| {
        let gate = inputs.tensor(&format!("gate_{branch}")).get(5);
        gate * inputs.tensor(branch).get(element)
    });
    let sum: f64 = terms.iter().sum();
    assert!((problem.oracle(&inputs, 5)[0].values[7] - sum).abs() < 1e-15);
}

#[test]
fn units_cover_every_output_element_once() {
    for op in NsaOp::ALL {
        assert_units_cover_outputs_once(&problem(op, &[2, 9, 4, 2, 16, 4, 2, 3]));
    }
}

#[test]
fn cost_counts_what_is_seen() {
    let flops = |op| problem(op, &[1, 5, 1, 1, 16, 4, 1, 2]).cost().flops;
    // Positions 0 to 3 see 1 to 4 keys, position 4 one.
    assert_eq!(flops(NsaOp::Selected), 4.0 * 11.0 * 16.0);
    // One key at position 0, two at each later one.
    assert_eq!(flops(NsaOp::Sliding), 4.0 * 9.0 * 16.0);
    // Positions 3 and 4 see the one whole block.
    assert_eq!(flops(NsaOp::Compressed), 4.0 * 2.0 * 16.0);
    assert_eq!(flops(NsaOp::Gated), 5.0 * 5.0 * 16.0);
}

#[test]
fn honest_values_are_near_on_every_kind_of_inputs() {
    for op in NsaOp::ALL {
        let problem = problem(op, &[1, 40, 4, 2, 64, 8, 3, 9]);
        let units: Vec<usize> = (0..problem.units()).collect();
        // Queries are rounded after they are scaled, so scores of 110 are off by up to a tenth.
        assert_honest_on_families(&problem, &units, 60.0);
    }
}
