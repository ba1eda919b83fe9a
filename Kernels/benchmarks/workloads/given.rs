//! Shapes of workload files: read by the shape's own type, and refused before anything is computed
//! from sizes that no device could hold.

use contender::{Shape, Workload};
use serde::de::DeserializeOwned;
use serde::Serialize;
use serde_json::Value;

/// Sequences or groups of a workload: as many as a result file has room for.
pub const LIST_MAX: usize = 4096;
/// Elements of a tensor.
const ELEMENTS_MAX: usize = 1 << 40;

/// Reads a shape by its type.
pub fn parse<T: DeserializeOwned>(shape: &Shape) -> Result<T, String> {
    for (name, value) in shape {
        if let Some(list) = value.as_array().filter(|list| list.len() > LIST_MAX) {
            let count = list.len();
            return Err(format!(
                "{name} has {count} entries; at most {LIST_MAX} fit"
            ));
        }
    }
    T::deserialize(Value::Object(shape.clone())).map_err(|error| error.to_string())
}

/// Reads a step over a paged cache, whose lengths become one of its axes.
pub fn paged<S: DeserializeOwned>(
    shape: &Shape,
    check: fn(&S) -> Result<(), String>,
    lengths: fn(&S) -> &Vec<usize>,
    workload: fn(&S) -> Workload,
) -> Result<(S, (), Workload), String> {
    let shape: S = parse(shape)?;
    check(&shape)?;
    let mut workload = workload(&shape);
    let lengths = lengths(&shape).clone().into();
    workload.axes.insert("kv_lens".to_owned(), lengths);
    Ok((shape, (), workload))
}

/// Writes a shape as `parse` reads it.
///
/// # Panics
/// If the type is not a struct of plain numbers, words and lists.
pub fn written<T: Serialize>(shape: &T) -> Shape {
    match serde_json::to_value(shape) {
        Ok(Value::Object(shape)) => shape,
        other => panic!("{other:?} is not a shape"),
    }
}

/// Refuses sizes of 0, and a tensor of more elements than any device holds.
pub fn check_sizes(sizes: &[(&str, usize)]) -> Result<(), String> {
    if let Some((name, _)) = sizes.iter().find(|(_, size)| *size == 0) {
        return Err(format!("{name} is 0; it must be at least 1"));
    }
    let product = sizes.iter().try_fold(1usize, |product, (_, size)| {
        product
            .checked_mul(*size)
            .filter(|product| *product <= ELEMENTS_MAX)
    });
    match product {
        Some(_) => Ok(()),
        None => {
            let words: Vec<String> = sizes
                .iter()
                .map(|(name, size)| format!("{size} {name}"))
                .collect();
            Err(format!(
                "{} are more than 2^40 elements",
                words.join(" by ")
            ))
        }
    }
}

/// The sum of lengths, unless it or their number is beyond any device.
pub fn total(name: &str, lengths: &[usize]) -> Result<usize, String> {
    if lengths.is_empty() {
        return Err(format!(
            "{name} is empty; it needs a length for each sequence"
        ));
    }
    let sum = lengths
        .iter()
        .try_fold(0usize, |sum, length| sum.checked_add(*length));
    sum.filter(|sum| *sum <= 1 << 30)
        .ok_or_else(|| format!("{name} add up to more than 2^30"))
}

/// Refuses a sequence shorter than its new tokens, which count as cached; it may be empty.
pub fn check_lengths(lengths: &[usize], q_len: usize) -> Result<(), String> {
    match lengths
        .iter()
        .position(|length| (1..q_len).contains(length))
    {
        None => Ok(()),
        Some(sequence) => {
            let length = lengths[sequence];
            Err(format!(
                "sequence {sequence} has {length} tokens, fewer than its {q_len} new ones"
            ))
        }
    }
}
