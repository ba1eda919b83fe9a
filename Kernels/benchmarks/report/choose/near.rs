//! Which measured shapes surround one that was not measured.

use super::{Race, Shape};
use std::cmp::Ordering;

/// A measured neighbour may be this many times as large or small along any axis; farther ones say nothing.
pub const FAR: f64 = 8.0;
/// Named where there is no answer.
const NAMED: usize = 3;

/// What the measured shapes say about another one.
#[derive(Debug)]
pub enum Near<'r, 'a> {
    /// Measured, maybe in several suites.
    Same(Vec<&'r Race<'a>>),
    /// It lies between these, along every axis.
    Between(Vec<&'r Race<'a>>),
    /// It lies outside of what was measured, or in a gap; these are the nearest, and why they do not do.
    Outside(Vec<&'r Race<'a>>, String),
}

/// `races` are those that agree with the shape in everything but sizes, which they all have.
pub fn near<'r, 'a>(shape: &Shape, races: &[&'r Race<'a>]) -> Near<'r, 'a> {
    let same: Vec<&Race> = races
        .iter()
        .copied()
        .filter(|race| race.shape.sizes == shape.sizes)
        .collect();
    if !same.is_empty() {
        return Near::Same(same);
    }
    let around: Vec<&Race> = races
        .iter()
        .copied()
        .filter(|race| {
            !races
                .iter()
                .any(|other| lies_between(&other.shape, shape, &race.shape))
        })
        .collect();
    for (axis, size) in &shape.sizes {
        let sizes = || around.iter().map(|race| race.shape.sizes[axis]);
        let covered = sizes().any(|other| other <= *size) && sizes().any(|other| other >= *size);
        if !covered {
            let all = races.iter().map(|race| race.shape.sizes[axis]);
            let (low, high) = all.fold((f64::INFINITY, 0.0_f64), |(low, high), size| {
                (low.min(size), high.max(size))
            });
            let why = match (low..=high).contains(size) {
                true => format!("no measured shape is on the other side of {axis} {size}"),
                false => format!("{axis} {size} is outside of what was measured, {low} to {high}"),
            };
            return Near::Outside(nearest(shape, races), why);
        }
    }
    let close: Vec<&Race> = around
        .into_iter()
        .filter(|race| widest(shape, &race.shape) <= FAR)
        .collect();
    let covered = |axis: &str, size: f64| {
        let sizes = || close.iter().map(|race| race.shape.sizes[axis]);
        sizes().any(|other| other <= size) && sizes().any(|other| other >= size)
    };
    match shape.sizes.iter().all(|(axis, size)| covered(axis, *size)) {
        true => Near::Between(close),
        false => {
            let why = format!(
                "the gap is too wide: measured shapes are more than {FAR} times larger or smaller"
            );
            Near::Outside(nearest(shape, races), why)
        }
    }
}

/// Whether `middle` is in the box that has `from` and `to` as corners, and is not `to` itself.
fn lies_between(middle: &Shape, from: &Shape, to: &Shape) -> bool {
    middle.sizes != to.sizes
        && from.sizes.iter().all(|(axis, from)| {
            let (middle, to) = (middle.sizes[axis], to.sizes[axis]);
            (from.min(to)..=from.max(to)).contains(&middle)
        })
}

/// The largest factor between two shapes along any axis.
fn widest(left: &Shape, right: &Shape) -> f64 {
    let factor = |(axis, size): (&String, &f64)| (size / right.sizes[axis]).ln().abs();
    left.sizes.iter().map(factor).fold(0.0, f64::max).exp()
}

fn nearest<'r, 'a>(shape: &Shape, races: &[&'r Race<'a>]) -> Vec<&'r Race<'a>> {
    let mut sorted = races.to_vec();
    let distance = |race: &Race| widest(shape, &race.shape);
    sorted.sort_by(|left, right| {
        distance(left)
            .partial_cmp(&distance(right))
            .unwrap_or(Ordering::Equal)
    });
    sorted.truncate(NAMED);
    sorted
}
