use contender::{Math, Problem};
use numeric::DType;
use tensor::{Input, Inputs};

use super::{PrefillOp, PrefillProblem, PrefillShape, PrefillSuite};
use crate::testing::{
    assert_honest_is_near, assert_honest_on_families, assert_units_cover_outputs_once,
};

fn problem(op: PrefillOp, q_lens: &[usize], kv_lens: &[usize], causal: bool) -> PrefillProblem {
    let shape = PrefillShape {
        q_lens: q_lens.to_vec(),
        kv_lens: kv_lens.to_vec(),
        heads: 4,
        kv_heads: 2,
        head_dim: 8,
        causal,
    };
    let workload = PrefillSuite::custom("test".to_owned());
    PrefillProblem::new(op, shape, DType::Bf16, workload).unwrap()
}

#[test]
fn cost_counts_visible_pairs_and_every_tensor_once() {
    let cost = problem(PrefillOp::PrefillLse, &[2, 0, 1], &[3, 1, 1], true).cost();
    // Pairs: 2 + 3, none, 1.
    assert_eq!(cost.flops, 4.0 * 8.0 * 4.0 * 6.0);
    assert_eq!(
        cost.read_bytes,
        (3 * 4 * 8 + 2 * 5 * 2 * 8) as f64 * 2.0 + 32.0
    );
    assert_eq!(
        cost.written_bytes,
        (3 * 4 * 8 * 2) as f64 + (3 * 4 * 4) as f64
    );
    assert_eq!(cost.math, Math::TensorCore(DType::Bf16));
}

#[test]
fn units_cover_every_output_element_once() {
    for op in [PrefillOp::Prefill, PrefillOp::PrefillLse] {
        let problem = problem(op, &[2, 0, 1, 3], &[3, 1, 1, 5], true);
        assert_units_cover_outputs_once(&problem);
    }
}

/// The answer of a unit from the definition, elements fetched one by one.
fn by_definition(problem: &PrefillProblem, inputs: &Inputs, row: usize, head: usize) -> Vec<f64> {
    let shape = &problem.shape;
    let width = shape.head_dim;
    let mut sequence = 0;
    let (mut query, mut first_key) = (row, 0);
    while query >= shape.q_lens[sequence] {
        query -= shape.q_lens[sequence];
        first_key += shape.kv_lens[sequence];
        sequence += 1;
    }
    let kv_head = head * shape.kv_heads / shape.heads;
    let [q, k, v] = ["q", "k", "v"].map(|name| inputs.tensor(name));
    let element = |tensor: Input, key, column| {
        let place = (first_key + key) * shape.kv_heads + kv_head;
        tensor.get(place * width + column)
    };
    let is_seen = |key: usize| {
        !shape.causal || key + shape.q_lens[sequence] <= query + shape.kv_lens[sequence]
    };
    let (mut out, mut total) = (vec![0.0; width], 0.0);
    for key in (0..shape.kv_lens[sequence]).filter(|&key| is_seen(key)) {
        let score: f64 = (0..width)
            .map(|column| {
                let place = row * shape.heads + head;
                q.get(place * width + column) * element(k, key, column)
            })
            .sum();
        let weight = (score * f64::from(problem.scale)).exp();
        total += weight;
        for (column, out) in out.iter_mut().enumerate() {
            *out += weight * element(v, key, column);
        }
    }
    out.iter().map(|out| out / total).collect()
}

#[test]
fn answers_follow_the_definition() {
    for causal in [true, false] {
        let problem = problem(PrefillOp::PrefillLse, &[2, 0, 1, 3], &[3, 1, 1, 5], causal);
        let inputs = Inputs::new(problem.tensors(), 11);
        for unit in 0..problem.units() {
            let slices = problem.oracle(&inputs, unit);
            let place = slices[0].start / problem.shape.head_dim;
            let (row, head) = (place / problem.shape.heads, place % problem.shape.heads);
            let right = by_definition(&problem, &inputs, row, head);
            for (got, right) in slices[0].values.iter().zip(&right) {
                assert!((got - right).abs() < 1e-12, "{got} and {right}");
            }
            assert_eq!(
                (slices[1].tensor, slices[1].start),
                (inputs.place("lse"), place)
            );
        }
    }
}

#[test]
fn honest_values_are_near_the_oracle_and_representable() {
    let problem = problem(PrefillOp::PrefillLse, &[40], &[90], true);
    let units = [0, 17, problem.units() - 1];
    assert_honest_is_near(&problem, &units, 4.0);
    assert_honest_on_families(&problem, &units, 4.0);
}

#[test]
fn answers_depend_on_the_seed_and_not_on_what_was_asked_before() {
    let problem = problem(PrefillOp::Prefill, &[4], &[9], true);
    let (first, second) = (
        Inputs::new(problem.tensors(), 1),
        Inputs::new(problem.tensors(), 2),
    );
    let right = problem.oracle(&first, 3);
    assert_ne!(problem.oracle(&second, 3), right);
    assert_eq!(problem.oracle(&first, 3), right);
}
