use contender::Problem;
use numeric::DType;
use tensor::Inputs;

use super::{DecodeProblem, DecodeShape, DecodeSuite, KvLayout};
use crate::paged::KvType;
use crate::testing::{
    assert_honest_is_near, assert_honest_on_families, assert_units_cover_outputs_once,
};

fn problem(lengths: &[usize], q_len: usize, layout: KvLayout) -> DecodeProblem {
    problem_over(KvType::Same, lengths, q_len, layout)
}

fn problem_over(
    kv_type: KvType,
    lengths: &[usize],
    q_len: usize,
    layout: KvLayout,
) -> DecodeProblem {
    let shape = DecodeShape {
        lengths: lengths.to_vec(),
        q_len,
        heads: 6,
        kv_heads: 2,
        head_dim: 16,
        page_size: 4,
        layout,
        kv_type,
    };
    let workload = DecodeSuite::custom(&shape);
    DecodeProblem::new(shape, DType::Bf16, workload)
}

#[test]
fn units_cover_every_output_element_once() {
    assert_units_cover_outputs_once(&problem(&[9, 0, 1], 2, KvLayout::Hnd));
}

#[test]
fn the_oracle_agrees_with_the_definition_in_both_layouts() {
    for (kv_type, layout) in [
        (KvType::Same, KvLayout::Nhd),
        (KvType::Same, KvLayout::Hnd),
        (KvType::Fp8, KvLayout::Hnd),
    ] {
        let problem = problem_over(kv_type, &[3, 10], 2, layout);
        let (k_scale, v_scale) = (f64::from(problem.k_scale), f64::from(problem.v_scale));
        let (shape, inputs) = (&problem.shape, Inputs::new(problem.tensors(), 5));
        let [q, keys, values] = ["q", "k_pages", "v_pages"].map(|name| inputs.tensor(name));
        let (sequence, query, head, dim) = (1, 0, 4, 7);
        let (mut top, mut total) = (0.0, 0.0);
        // The first of two queries sees nine of ten positions.
        for token in 0..9 {
            let row = shape.cache_row(&problem.table, sequence, token, head / 3);
            let score: f64 = (0..16)
                .map(|d| {
                    let place = shape.query_row(sequence, query, head) + d;
                    q.get(place) * (keys.get(row + d) * k_scale)
                })
                .sum();
            let weight = (score * f64::from(problem.scale)).exp();
            top += weight * values.get(row + dim) * v_scale;
            total += weight;
        }
        let slices = problem.oracle(&inputs, sequence * 2 + head / 3);
        let index = shape.query_row(sequence, query, head) + dim;
        let found = slices[query].values[index - slices[query].start];
        assert!((found - top / total).abs() < 1e-14);
    }
}

#[test]
fn honest_values_are_near_and_representable() {
    let problem = problem(&[200, 1], 1, KvLayout::Nhd);
    let units: Vec<usize> = (0..problem.units()).collect();
    assert_honest_is_near(&problem, &units, 4.0);
}

#[test]
fn honest_values_are_near_on_every_kind_of_inputs() {
    for kv_type in [KvType::Same, KvType::Fp8] {
        let problem = problem_over(kv_type, &[200, 1, 33], 2, KvLayout::Hnd);
        let units: Vec<usize> = (0..problem.units()).collect();
        assert_honest_on_families(&problem, &units, 4.0);
    }
}

#[test]
fn an_empty_sequence_has_the_output_zero() {
    let problem = problem(&[4, 0], 1, KvLayout::Nhd);
    let inputs = Inputs::new(problem.tensors(), 5);
    let slices = problem.oracle(&inputs, 3);
    assert!(slices[0].values.iter().all(|&value| value == 0.0));
}

#[test]
fn cost_counts_what_is_in_use() {
    let cost = problem(&[9, 0, 1], 1, KvLayout::Nhd).cost();
    let queries = 3.0 * 6.0 * 16.0 * 2.0;
    assert_eq!(cost.read_bytes, 10.0 * 2.0 * 2.0 * 16.0 * 2.0 + queries);
    assert_eq!(cost.written_bytes, queries);
    assert_eq!(cost.flops, 4.0 * 10.0 * 6.0 * 16.0);
    // Two queries over 9 positions see 8 and 9; over one position, only the second sees it.
    let cost = problem(&[9, 0, 1], 2, KvLayout::Nhd).cost();
    assert_eq!(cost.flops, 4.0 * (8.0 + 9.0 + 1.0) * 6.0 * 16.0);
}

#[test]
fn an_fp8_cache_has_half_the_bytes_and_values_of_the_same_size() {
    let problem = problem_over(KvType::Fp8, &[9, 0, 1], 1, KvLayout::Nhd);
    let queries = 3.0 * 6.0 * 16.0 * 2.0;
    assert_eq!(problem.cost().read_bytes, 10.0 * 2.0 * 2.0 * 16.0 + queries);
    let inputs = Inputs::new(problem.tensors(), 3);
    let row = problem.shape.cache_row(&problem.table, 0, 3, 1);
    let codes = inputs.tensor("v_pages").range(row, 16);
    assert!(codes.iter().all(|&code| DType::F8E4M3.round(code) == code));
    let largest = codes.iter().fold(0.0, |top: f64, code| top.max(code.abs()));
    let scaled = largest * f64::from(problem.v_scale);
    assert!((0.5..=1.4).contains(&scaled), "{scaled}");
}

#[test]
fn the_first_unit_is_of_the_shortest_sequence_with_tokens() {
    let problem = problem(&[9, 0, 1, 5], 1, KvLayout::Nhd);
    let inputs = Inputs::new(problem.tensors(), 1);
    let first = problem.oracle(&inputs, 0);
    assert_eq!(first[0].start, problem.shape.query_row(2, 0, 0));
}
