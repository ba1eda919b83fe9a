//! Correct answers of prefill attention: one query of one head.

use std::cell::RefCell;

use contender::Slice;
use reference::{attention, Real};
use tensor::{Contents, Inputs};

use super::shape::{cumulative, PrefillShape};
use crate::arithmetic::{read, slice, Store};

pub fn unit<R: Real>(
    shape: &PrefillShape,
    inputs: &Inputs,
    unit: usize,
    store: Store,
) -> Vec<Slice> {
    // Heads outermost: the sampled units come in order, so neighbours share keys and values.
    let (head, row) = (unit / shape.total_q(), unit % shape.total_q());
    let starts = cumulative(&shape.q_lens);
    let sequence = starts.partition_point(|&start| start <= row) - 1;
    let visible = shape.visible(sequence, row - starts[sequence]);
    let place = row * shape.heads + head;
    let query: Vec<R> = read(inputs.tensor("q"), place * shape.head_dim, shape.head_dim);
    let dtype = inputs.specs()[inputs.place("out")].dtype;
    let source = Source {
        contents: ["k", "v"].map(|name| inputs.tensor(name).contents()),
        first_row: shape.kv_lens[..sequence].iter().sum(),
        head: head / (shape.heads / shape.kv_heads),
        heads: shape.kv_heads,
        widths: [shape.head_dim, shape.value_dim()],
    };
    let attended = with_keys_and_values(source, inputs, visible, |keys, values| {
        let stored = |weight: R| R::of(store(dtype, weight.to_f64()));
        attention::row(
            &query,
            keys,
            values,
            R::of(f64::from(shape.scale())),
            stored,
        )
    });
    let mut slices = vec![slice(
        inputs,
        "out",
        place * shape.value_dim(),
        attended.out,
        store,
    )];
    if inputs.specs().iter().any(|spec| spec.name == "lse") {
        slices.push(slice(inputs, "lse", place, [attended.lse], store));
    }
    slices
}

/// Which keys and values.
#[derive(Clone, Debug, PartialEq)]
struct Source {
    /// Of keys and values, which other kinds of inputs and other problems fill differently.
    contents: [Contents; 2],
    first_row: usize,
    head: usize,
    heads: usize,
    /// Of a key and of a value.
    widths: [usize; 2],
}

/// The rows of one head of one sequence, from the first on.
struct Slab {
    source: Source,
    keys: Vec<f32>,
    values: Vec<f32>,
}

thread_local! {
    /// What the last unit on this thread attended to. Recomputing an element costs more than using
    /// it, and most units share their keys with the previous one.
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
        let Source {
            first_row,
            head,
            heads,
            widths: [of_key, of_value],
            ..
        } = slab.source;
        for (name, width, elements) in [
            ("k", of_key, &mut slab.keys),
            ("v", of_value, &mut slab.values),
        ] {
            let tensor = inputs.tensor(name);
            let mut row = vec![0.0; width];
            for index in elements.len() / width..rows {
                let place = (first_row + index) * heads + head;
                tensor.range_into(place * width, &mut row);
                elements.extend(row.iter().map(|&value| value as f32));
            }
        }
        work(&slab.keys[..rows * of_key], &slab.values[..rows * of_value])
    })
}
