//! One naive single-threaded loop per operation: the baseline for the others.

use crate::{Element, Unit};

pub fn forward<T: Element>(unit: Unit, x: &[T], out: &mut [T]) {
    for (x, out) in x.iter().zip(out) {
        *out = T::narrow(unit.plain(x.widen()).0);
    }
}

pub fn backward<T: Element>(unit: Unit, x: &[T], out_gradient: &[T], x_gradient: &mut [T]) {
    for ((x, gradient), out) in x.iter().zip(out_gradient).zip(x_gradient) {
        *out = T::narrow(unit.plain(x.widen()).1 * gradient.widen());
    }
}

pub fn gated_forward<T: Element>(unit: Unit, gate: &[T], up: &[T], out: &mut [T]) {
    for ((gate, up), out) in gate.iter().zip(up).zip(out) {
        *out = T::narrow(unit.plain(gate.widen()).0 * up.widen());
    }
}

pub fn packed_forward<T: Element>(unit: Unit, input: &[T], columns: usize, out: &mut [T]) {
    for (row, out) in input.chunks(2 * columns).zip(out.chunks_mut(columns)) {
        gated_forward(unit, &row[..columns], &row[columns..], out);
    }
}

pub fn gated_backward<T: Element>(unit: Unit, gate: &mut [T], up: &mut [T], out_gradient: &[T]) {
    for ((gate, up), gradient) in gate.iter_mut().zip(up).zip(out_gradient) {
        let (value, slope) = unit.plain(gate.widen());
        let gradient = gradient.widen();
        *gate = T::narrow(gradient * up.widen() * slope);
        *up = T::narrow(gradient * value);
    }
}
