//! Kernels that are right on uniform numbers and wrong on others: each passes the gate on the inputs
//! that are timed, and fails it on one of the other kinds, by name. And kernels that are wrong only
//! where errors are small beside those of other rows.

use contender::{Bound, Buffer, Problem, Tensors};
use examine::cpu;
use gate::{BufferSet, Failure, FailureKind, Gate, GateOptions};
use numeric::DType;
use shared::cpu::{bf16, bind_work};
use workloads::{
    DecodeProblem, DecodeShape, DecodeSuite, KvLayout, KvType, NormOp, NormProblem, NormSuite,
    NormTypes, PageTable, PrefillOp, PrefillProblem, PrefillShape, PrefillSuite, RowShape,
};

const SEED: u64 = 5;
/// Of the page tables and scales.
const METADATA: u64 = 77;

/// Attention of one query, as a mutant does it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mutant {
    Honest,
    /// The exponential of the score itself.
    NoMaximum,
    /// The maximum of the first 32 keys.
    EarlyMaximum,
    /// 1 + x + x^2 / 2 + x^3 / 6.
    CubicExponential,
    /// Multiplies what follows the last token by zero.
    ReadsOn,
    /// Follows the page table of another seed.
    OtherTable,
}

fn decode() -> DecodeProblem {
    let shape = DecodeShape {
        lengths: vec![300, 77, 200],
        q_len: 1,
        heads: 4,
        kv_heads: 2,
        head_dim: 64,
        page_size: 16,
        layout: KvLayout::Nhd,
        kv_type: KvType::Same,
    };
    let workload = DecodeSuite::custom(&shape);
    DecodeProblem::seeded(shape, DType::Bf16, workload, METADATA)
}

impl Mutant {
    fn weights(self, scores: &[f32]) -> Vec<f32> {
        let largest = |scores: &[f32]| scores.iter().copied().fold(f32::MIN, f32::max);
        let exponential: &dyn Fn(f32) -> f32 = match self {
            Mutant::NoMaximum => &f32::exp,
            Mutant::CubicExponential => &|x| 1.0 + x * (1.0 + x * (0.5 + x / 6.0)),
            Mutant::EarlyMaximum => {
                let early = largest(&scores[..scores.len().min(32)]);
                return normalised(scores.iter().map(|x| (x - early).exp()).collect());
            }
            _ => {
                let largest = largest(scores);
                return normalised(scores.iter().map(|x| (x - largest).exp()).collect());
            }
        };
        normalised(scores.iter().map(|&x| exponential(x)).collect())
    }

    fn bind(self, problem: &DecodeProblem, buffers: &[Buffer]) -> Box<dyn Bound> {
        let tensors = Tensors::new(problem, buffers).unwrap();
        let (problem, shape) = (problem.clone(), problem.shape.clone());
        let table = match self {
            Mutant::OtherTable => {
                PageTable::scattered(&shape.lengths, shape.page_size, METADATA + 1).unwrap()
            }
            _ => problem.table.clone(),
        };
        let bound = bind_work(&tensors, |memory| {
            let (q, keys) = (memory.read::<bf16>("q")?, memory.read::<bf16>("k_pages")?);
            let (values, mut out) = (
                memory.read::<bf16>("v_pages")?,
                memory.write::<bf16>("out")?,
            );
            let dim = shape.head_dim;
            Ok(Box::new(move || {
                for sequence in 0..shape.batch() {
                    let length = shape.lengths[sequence];
                    for head in 0..shape.heads {
                        let query = shape.query_row(sequence, 0, head);
                        let of =
                            |token| shape.cache_row(&table, sequence, token, head / shape.group());
                        let rows: Vec<usize> = (0..length).map(of).collect();
                        let dot = |row: &usize| -> f32 {
                            let pairs = q[query..][..dim].iter().zip(&keys[*row..][..dim]);
                            pairs.map(|(q, k)| q.to_f32() * k.to_f32()).sum()
                        };
                        let scores: Vec<f32> =
                            rows.iter().map(|row| dot(row) * problem.scale).collect();
                        let weights = self.weights(&scores);
                        for column in 0..dim {
                            let terms = rows.iter().zip(&weights);
                            let mut sum: f32 = terms
                                .map(|(row, w)| w * values[row + column].to_f32())
                                .sum();
                            if self == Mutant::ReadsOn {
                                let after = rows[length - 1] + shape.kv_heads * dim + column;
                                sum += 0.0 * values[after % values.len()].to_f32();
                            }
                            out[query + column] = bf16::from_f32(sum);
                        }
                    }
                }
            }))
        });
        bound.unwrap()
    }
}

fn normalised(mut weights: Vec<f32>) -> Vec<f32> {
    let total: f32 = weights.iter().sum();
    weights.iter_mut().for_each(|weight| *weight /= total);
    weights
}

/// The gate's verdict, and that of a gate that knows only the timed kind of inputs.
fn examine(
    problem: &dyn Problem,
    bind: impl Fn(&[Buffer]) -> Box<dyn Bound>,
) -> (Result<(), Failure>, Result<(), Failure>) {
    let device = cpu();
    let gate = Gate::new(problem, GateOptions::new(SEED)).unwrap();
    let set = BufferSet::new(&*device, problem.tensors(), SEED).unwrap();
    let mut bound = bind(set.buffers());
    let timed = gate.examine_reference(&set, &mut *bound).map(drop);
    (gate.examine_values(&set, &mut *bound).map(drop), timed)
}

fn assert_caught(whole: Result<(), Failure>, words: &[&str]) {
    let failure = whole.unwrap_err();
    let text = failure.to_string();
    assert_eq!(failure.kind(), FailureKind::Wrong, "{text}");
    assert!(words.iter().all(|word| text.contains(word)), "{text}");
}

#[test]
fn softmaxes_that_need_flat_scores_are_caught() {
    let problem = decode();
    let examined = |mutant: Mutant| examine(&problem, |buffers| mutant.bind(&problem, buffers));
    let (whole, timed) = examined(Mutant::Honest);
    timed.unwrap();
    whole.unwrap();
    for (mutant, kind) in [
        (Mutant::NoMaximum, "late_maximum"),
        (Mutant::CubicExponential, "late_maximum"),
        (Mutant::EarlyMaximum, "drift"),
    ] {
        let (whole, timed) = examined(mutant);
        timed.expect("right on uniform numbers");
        assert_caught(whole, &["'out'", &format!("(inputs: {kind})")]);
    }
}

#[test]
fn dead_memory_and_other_page_tables_are_caught() {
    let problem = decode();
    for mutant in [Mutant::ReadsOn, Mutant::OtherTable] {
        let (whole, _) = examine(&problem, |buffers| mutant.bind(&problem, buffers));
        assert_caught(whole, &["non-finite elements to 'out'"]);
    }
}

/// The root mean square of wide rows of uniform numbers is a constant.
#[test]
fn a_constant_normaliser_is_caught() {
    let (shape, workload) = NormSuite::custom(RowShape {
        rows: 20,
        columns: 65_536,
    });
    let types = NormTypes {
        activation: DType::Bf16,
        weight: DType::Bf16,
    };
    let problem = NormProblem::new(NormOp::RmsNormForward, shape, types, workload);
    let bind = |buffers: &[Buffer]| {
        let tensors = Tensors::new(&problem, buffers).unwrap();
        let bound = bind_work(&tensors, |memory| {
            let (x, weight) = (memory.read::<bf16>("x")?, memory.read::<bf16>("weight")?);
            let mut out = memory.write::<bf16>("out")?;
            Ok(Box::new(move || {
                for (index, out) in out.iter_mut().enumerate() {
                    let weight = weight[index % weight.len()].to_f32();
                    *out = bf16::from_f32(x[index].to_f32() * 3f32.sqrt() * weight);
                }
            }))
        });
        bound.unwrap()
    };
    let (whole, timed) = examine(&problem, bind);
    timed.expect("right on uniform numbers");
    assert_caught(whole, &["'out'", "(inputs: uneven_rows)"]);
}

/// What late rows of causal attention leave out. They are averages of many values, and small beside the
/// first row, which is the first value itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum LateRows {
    Honest,
    /// Every 20th key.
    FivePercentOfKeys,
    /// What e4m3 does not have of the values.
    Fp8Values,
    /// The same of the weights, relative to the largest.
    Fp8Weights,
}

const QUERIES: usize = 512;
const LATE: usize = QUERIES / 4;

fn causal_prefill() -> PrefillProblem {
    let shape = PrefillShape {
        q_lens: vec![QUERIES],
        kv_lens: vec![QUERIES],
        heads: 1,
        kv_heads: 1,
        head_dim: 64,
        value_dim: None,
        causal: true,
    };
    let workload = PrefillSuite::custom("late_rows".to_owned());
    PrefillProblem::new(PrefillOp::Prefill, shape, DType::Bf16, workload).unwrap()
}

fn as_e4m3(values: &[f32]) -> Vec<f32> {
    let wide: Vec<f64> = values.iter().map(|&value| f64::from(value)).collect();
    let codes = DType::F8E4M3.encode(&wide);
    let rounded = DType::F8E4M3.decode(&codes);
    rounded.into_iter().map(|value| value as f32).collect()
}

impl LateRows {
    fn bind(self, problem: &PrefillProblem, buffers: &[Buffer]) -> Box<dyn Bound> {
        let tensors = Tensors::new(problem, buffers).unwrap();
        let (dim, scale) = (problem.shape.head_dim, problem.scale);
        let bound = bind_work(&tensors, |memory| {
            let (q, keys) = (memory.read::<bf16>("q")?, memory.read::<bf16>("k")?);
            let (values, mut out) = (memory.read::<bf16>("v")?, memory.write::<bf16>("out")?);
            Ok(Box::new(move || {
                let widened: Vec<f32> = values.iter().map(|value| value.to_f32()).collect();
                let narrowed = as_e4m3(&widened);
                for (row, out) in out.chunks_exact_mut(dim).enumerate() {
                    let mutant = if row < LATE { LateRows::Honest } else { self };
                    let kept =
                        |key: &usize| mutant != LateRows::FivePercentOfKeys || key % 20 != 19;
                    let seen: Vec<usize> = (0..=row).filter(kept).collect();
                    let dot = |key: &usize| -> f32 {
                        let pairs = q[row * dim..][..dim].iter().zip(&keys[key * dim..][..dim]);
                        pairs.map(|(q, k)| q.to_f32() * k.to_f32()).sum()
                    };
                    let scores: Vec<f32> = seen.iter().map(|key| scale * dot(key)).collect();
                    let largest = scores.iter().copied().fold(f32::MIN, f32::max);
                    let mut weights: Vec<f32> =
                        scores.iter().map(|score| (score - largest).exp()).collect();
                    if mutant == LateRows::Fp8Weights {
                        weights = as_e4m3(&weights);
                    }
                    let weights = normalised(weights);
                    let values = match mutant {
                        LateRows::Fp8Values => &narrowed,
                        _ => &widened,
                    };
                    for (column, out) in out.iter_mut().enumerate() {
                        let terms = seen.iter().zip(&weights);
                        let sum: f32 = terms.map(|(key, w)| w * values[key * dim + column]).sum();
                        *out = bf16::from_f32(sum);
                    }
                }
            }))
        });
        bound.unwrap()
    }
}

#[test]
fn late_rows_that_leave_something_out_are_caught() {
    let problem = causal_prefill();
    let examined = |mutant: LateRows| examine(&problem, |buffers| mutant.bind(&problem, buffers));
    let (whole, timed) = examined(LateRows::Honest);
    timed.unwrap();
    whole.unwrap();
    for mutant in [
        LateRows::FivePercentOfKeys,
        LateRows::Fp8Values,
        LateRows::Fp8Weights,
    ] {
        let (whole, timed) = examined(mutant);
        assert_caught(whole, &["'out'"]);
        assert_caught(timed, &["'out'"]);
    }
}
