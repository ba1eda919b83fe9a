use contender::{Math, Problem};
use numeric::DType;
use tensor::{Input, Inputs};

use super::{PrefillOp, PrefillProblem, PrefillShape, PrefillSuite};
use crate::testing::{
    assert_honest_is_near, assert_honest_on_families, assert_units_cover_outputs_once,
};

fn problem(op: PrefillOp, q_lens: &[usize], kv_lens: &[usize], causal: bool) -> PrefillProblem {
    with_values(None, op, q_lens, kv_lens, causal)
}

fn with_values(
    value_dim: Option<usize>,
    op: PrefillOp,
    q_lens: &[usize],
    kv_lens: &[usize],
    causal: bool,
) -> PrefillProblem {
    let shape = PrefillShape {
        q_lens: q_lens.to_vec(),
        kv_lens: kv_lens.to_vec(),
        heads: 4,
        kv_heads: 2,
        head_dim: 8,
        value_dim,
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
fn narrower_values_cost_less_and_are_an_axis() {
    let of = |value_dim| with_values(value_dim, PrefillOp::Prefill, &[2, 1], &[3, 1], true);
    let (same, narrow) = (of(None), of(Some(6)));
    // Six pairs of four heads, eight elements of a query and six of a value.
    assert_eq!(narrow.cost().flops, 2.0 * (8.0 + 6.0) * 4.0 * 6.0);
    assert_eq!(narrow.cost().written_bytes, (3 * 4 * 6 * 2) as f64);
    let read = same.cost().read_bytes - narrow.cost().read_bytes;
    assert_eq!(read, (4 * 2 * 2 * 2) as f64);
    assert_eq!(narrow.workload().axes["value_dim"], 6);
    assert_eq!(narrow.workload().axes["head_dim"], 8);
    // One way to write a shape: no axis, whether said or not.
    let said = of(Some(8));
    assert_eq!(said.workload().axes, same.workload().axes);
    assert!(!same.workload().axes.contains_key("value_dim"));
}

#[test]
fn pieces_of_narrower_values_are_in_their_places() {
    let problem = with_values(Some(6), PrefillOp::PrefillLse, &[2, 300], &[3, 310], true);
    let pieces = problem.cut();
    assert_eq!(pieces.len(), 3);
    let (piece, places) = &pieces[2];
    assert_eq!((piece.shape.value_dim(), piece.shape.kv_lens[0]), (6, 310));
    let starts: Vec<_> = places.iter().flatten().map(|place| place.1).collect();
    let (query, key) = ((2 + 256) * 4, 3 * 2);
    assert_eq!(starts, [query * 8, key * 8, key * 6, query * 6, query]);
}

#[test]
fn units_cover_every_output_element_once() {
    for op in [PrefillOp::Prefill, PrefillOp::PrefillLse] {
        for value_dim in [None, Some(6), Some(11)] {
            let problem = with_values(value_dim, op, &[2, 0, 1, 3], &[3, 1, 1, 5], true);
            assert_units_cover_outputs_once(&problem);
        }
    }
}

#[test]
fn answers_do_not_depend_on_the_problem_before() {
    // The same seed and places of keys, but every kind of inputs has its ranges by the lengths.
    let short = problem(PrefillOp::Prefill, &[3, 5], &[9, 5], true);
    let long = problem(PrefillOp::Prefill, &[5, 3], &[20, 3], true);
    let answers = |problem: &PrefillProblem, kind: usize| {
        let family = &problem.families()[kind];
        problem.oracle(&Inputs::new(&family.tensors, 7), 2)
    };
    for kind in 0..short.families().len() {
        let alone = std::thread::scope(|scope| {
            let thread = scope.spawn(|| answers(&long, kind));
            thread.join().unwrap()
        });
        for before in 0..short.families().len() {
            answers(&short, before);
            let after = answers(&long, kind);
            assert_eq!(
                after[0].values, alone[0].values,
                "kind {kind} after {before}"
            );
        }
    }
}

/// The answer of a unit from the definition, elements fetched one by one.
fn by_definition(problem: &PrefillProblem, inputs: &Inputs, row: usize, head: usize) -> Vec<f64> {
    let shape = &problem.shape;
    let mut sequence = 0;
    let (mut query, mut first_key) = (row, 0);
    while query >= shape.q_lens[sequence] {
        query -= shape.q_lens[sequence];
        first_key += shape.kv_lens[sequence];
        sequence += 1;
    }
    let kv_head = head * shape.kv_heads / shape.heads;
    let [q, k, v] = ["q", "k", "v"].map(|name| inputs.tensor(name));
    let (width, value_width) = (shape.head_dim, shape.value_dim());
    let element = |tensor: Input, width, key, column| {
        let place = (first_key + key) * shape.kv_heads + kv_head;
        tensor.get(place * width + column)
    };
    let is_seen = |key: usize| {
        !shape.causal || key + shape.q_lens[sequence] <= query + shape.kv_lens[sequence]
    };
    let (mut out, mut total) = (vec![0.0; value_width], 0.0);
    for key in (0..shape.kv_lens[sequence]).filter(|&key| is_seen(key)) {
        let score: f64 = (0..width)
            .map(|column| {
                let place = row * shape.heads + head;
                q.get(place * width + column) * element(k, width, key, column)
            })
            .sum();
        let weight = (score * f64::from(problem.scale)).exp();
        total += weight;
        for (column, out) in out.iter_mut().enumerate() {
            *out += weight * element(v, value_width, key, column);
        }
    }
    out.iter().map(|out| out / total).collect()
}

#[test]
fn answers_follow_the_definition() {
    for (value_dim, causal) in [
        (None, true),
        (None, false),
        (Some(6), true),
        (Some(11), false),
    ] {
        let (q_lens, kv_lens) = ([2, 0, 1, 3], [3, 1, 1, 5]);
        let problem = with_values(value_dim, PrefillOp::PrefillLse, &q_lens, &kv_lens, causal);
        let inputs = Inputs::new(problem.tensors(), 11);
        for unit in 0..problem.units() {
            let slices = problem.oracle(&inputs, unit);
            let place = slices[0].start / problem.shape.value_dim();
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
    for value_dim in [None, Some(6)] {
        let problem = with_values(value_dim, PrefillOp::PrefillLse, &[40], &[90], true);
        let units = [0, 17, problem.units() - 1];
        assert_honest_is_near(&problem, &units, 4.0);
        assert_honest_on_families(&problem, &units, 4.0);
    }
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
