//! Right answers of prefill attention: one query of one head.

use std::cell::RefCell;

use contender::Slice;
use numeric::DType;
use reference::{attention, Real};
use tensor::Inputs;

use super::problem::{PrefillProblem, KEYS, LSE, OUT, QUERIES, VALUES};

/// The arithmetic of an answer besides `R` itself: what rounds a value to the type it is stored in.
pub type Store = fn(DType, f64) -> f64;

pub fn unit<R: Real>(
    problem: &PrefillProblem,
    inputs: &Inputs,
    unit: usize,
    store: Store,
) -> Vec<Slice> {
    let shape = &problem.shape;
    // Heads outermost: the sampled units come in order, so neighbours share keys and values.
    let (head, row) = (unit / shape.total_q(), unit % shape.total_q());
    let sequence = problem.starts_q.partition_point(|&start| start <= row) - 1;
    let visible = shape.visible(sequence, row - problem.starts_q[sequence]);
    let place = row * shape.heads + head;
    let query: Vec<R> = inputs
        .range(QUERIES, place * shape.head_dim, shape.head_dim)
        .into_iter()
        .map(R::of)
        .collect();
    let source = Source {
        seed: inputs.seed(),
        dtype: problem.dtype,
        first_row: problem.starts_kv[sequence],
        head: head / (shape.heads / shape.kv_heads),
        heads: shape.kv_heads,
        width: shape.head_dim,
    };
    let attended = with_keys_and_values(source, inputs, visible, |keys, values| {
        let stored = |weight: R| R::of(store(problem.dtype, weight.to_f64()));
        attention::row(
            &query,
            keys,
            values,
            R::of(f64::from(problem.scale)),
            stored,
        )
    });
    let out = attended.out.into_iter();
    let mut slices = vec![Slice {
        tensor: OUT,
        start: place * shape.head_dim,
        values: out
            .map(|value| store(problem.dtype, value.to_f64()))
            .collect(),
    }];
    if problem.op.has_lse() {
        slices.push(Slice {
            tensor: LSE,
            start: place,
            values: vec![store(DType::F32, attended.lse.to_f64())],
        });
    }
    slices
}

/// Which keys and values: everything that decides their contents.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Source {
    seed: u64,
    dtype: DType,
    first_row: usize,
    head: usize,
    heads: usize,
    width: usize,
}

/// The rows of one head of one sequence, from the first on.
struct Slab {
    source: Source,
    keys: Vec<f32>,
    values: Vec<f32>,
}

thread_local! {
    /// What the last unit on this thread attended to. Making an element again costs more than using
    /// it, and most units share their keys with the one before.
    static SLAB: RefCell<Option<Slab>> = const { RefCell::new(None) };
}

fn with_keys_and_values<T>(
    source: Source,
    inputs: &Inputs,
    rows: usize,
    work: impl FnOnce(&[f32], &[f32]) -> T,
) -> T {
    SLAB.with_borrow_mut(|slot| {
        if slot.as_ref().is_none_or(|slab| slab.source != source) {
            *slot = None;
        }
        let slab = slot.get_or_insert_with(|| Slab {
            source,
            keys: Vec::new(),
            values: Vec::new(),
        });
        for (tensor, elements) in [(KEYS, &mut slab.keys), (VALUES, &mut slab.values)] {
            let mut row = vec![0.0; source.width];
            for index in elements.len() / source.width..rows {
                let place = (source.first_row + index) * source.heads + source.head;
                inputs.range_into(tensor, place * source.width, &mut row);
                elements.extend(row.iter().map(|&value| value as f32));
            }
        }
        let elements = rows * source.width;
        work(&slab.keys[..elements], &slab.values[..elements])
    })
}
