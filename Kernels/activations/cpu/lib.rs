//! Activations on the CPU: threaded over pieces of the tensors and written for auto-vectorisation,
//! and, in [`plain`], as one naive loop each.

pub mod plain;
mod units;

use host::vectorized;
pub use host::Element;
use rayon::prelude::*;
pub use units::Unit;
use units::{with_curve, Curve, Gated, Pair, Slope};

/// Elements per task.
const TASK: usize = 1 << 14;
/// Elements that are widened at once: a few such buffers fit in L1.
const BLOCK: usize = 1024;

/// `out = unit(x)`
pub fn forward<T: Element>(unit: Unit, x: &[T], out: &mut [T]) {
    with_curve!(unit, C => map1::<T, C>(x, out));
}

/// `x_gradient = unit'(x) * out_gradient`
pub fn backward<T: Element>(unit: Unit, x: &[T], out_gradient: &[T], x_gradient: &mut [T]) {
    with_curve!(unit, C => map2::<T, Slope<C>>(x, out_gradient, x_gradient));
}

/// `out = unit(gate) * up`
pub fn gated_forward<T: Element>(unit: Unit, gate: &[T], up: &[T], out: &mut [T]) {
    with_curve!(unit, C => map2::<T, Gated<C>>(gate, up, out));
}

/// `out = unit(gate) * up` for rows of gate and up, `columns` elements each.
pub fn packed_forward<T: Element>(unit: Unit, input: &[T], columns: usize, out: &mut [T]) {
    let rows = out
        .par_chunks_mut(columns)
        .zip(input.par_chunks(2 * columns));
    rows.for_each(|(out, row)| {
        let (gate, up) = row.split_at(columns);
        gated_forward(unit, gate, up, out);
    });
}

/// In place: gate and up become their gradients.
pub fn gated_backward<T: Element>(unit: Unit, gate: &mut [T], up: &mut [T], out_gradient: &[T]) {
    with_curve!(unit, C => gated_backward_of::<T, C>(gate, up, out_gradient));
}

fn map1<T: Element, C: Curve>(x: &[T], out: &mut [T]) {
    let tasks = out.par_chunks_mut(TASK).zip(x.par_chunks(TASK));
    tasks.for_each(|(out, x)| map1_task::<T, C>(x, out));
}

vectorized! {
    fn map1_task<T: Element, C: Curve>(x: &[T], out: &mut [T]) {
        let mut wide = [0.0; BLOCK];
        for (out, x) in out.chunks_mut(BLOCK).zip(x.chunks(BLOCK)) {
            let wide = &mut wide[..x.len()];
            T::widen_all(x, wide);
            for value in wide.iter_mut() {
                *value = C::value(*value);
            }
            T::narrow_all(wide, out);
        }
    }
}

fn map2<T: Element, P: Pair>(a: &[T], b: &[T], out: &mut [T]) {
    let tasks = out
        .par_chunks_mut(TASK)
        .zip(a.par_chunks(TASK).zip(b.par_chunks(TASK)));
    tasks.for_each(|(out, (a, b))| map2_task::<T, P>(a, b, out));
}

vectorized! {
    fn map2_task<T: Element, P: Pair>(a: &[T], b: &[T], out: &mut [T]) {
        let mut wide = [[0.0; BLOCK]; 2];
        let blocks = out
            .chunks_mut(BLOCK)
            .zip(a.chunks(BLOCK).zip(b.chunks(BLOCK)));
        for (out, (a, b)) in blocks {
            let [wide_a, wide_b] = &mut wide;
            let (wide_a, wide_b) = (&mut wide_a[..out.len()], &mut wide_b[..out.len()]);
            T::widen_all(a, wide_a);
            T::widen_all(b, wide_b);
            for (a, b) in wide_a.iter_mut().zip(wide_b.iter()) {
                *a = P::of(*a, *b);
            }
            T::narrow_all(wide_a, out);
        }
    }
}

fn gated_backward_of<T: Element, C: Curve>(gate: &mut [T], up: &mut [T], out_gradient: &[T]) {
    let tasks = gate
        .par_chunks_mut(TASK)
        .zip(up.par_chunks_mut(TASK).zip(out_gradient.par_chunks(TASK)));
    tasks.for_each(|(gate, (up, gradient))| gated_backward_task::<T, C>(gate, up, gradient));
}

vectorized! {
    fn gated_backward_task<T: Element, C: Curve>(
        gate: &mut [T],
        up: &mut [T],
        gradient: &[T],
    ) {
        let mut wide = [[0.0; BLOCK]; 3];
        let blocks = gate
            .chunks_mut(BLOCK)
            .zip(up.chunks_mut(BLOCK).zip(gradient.chunks(BLOCK)));
        for (gate, (up, gradient)) in blocks {
            let [wide_gate, wide_up, wide_gradient] =
                wide.each_mut().map(|wide| &mut wide[..gradient.len()]);
            T::widen_all(gate, wide_gate);
            T::widen_all(up, wide_up);
            T::widen_all(gradient, wide_gradient);
            let pairs = wide_gate.iter_mut().zip(wide_up.iter_mut());
            for ((gate, up), gradient) in pairs.zip(wide_gradient.iter()) {
                let (value, slope) = C::both(*gate);
                *gate = gradient * *up * slope;
                *up = gradient * value;
            }
            T::narrow_all(wide_gate, gate);
            T::narrow_all(wide_up, up);
        }
    }
}
