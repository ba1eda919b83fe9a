//! Vectors that all rows share: weights, biases and their gradients.

use std::borrow::Cow;

use crate::Element;

/// One value per column, as f32 or as the activations' type.
#[derive(Clone, Copy, Debug)]
pub enum Columns<'a, T> {
    Wide(&'a [f32]),
    Same(&'a [T]),
}

impl<'a, T: Element> Columns<'a, T> {
    pub(crate) fn widened(self) -> Cow<'a, [f32]> {
        match self {
            Columns::Wide(values) => Cow::Borrowed(values),
            Columns::Same(values) => {
                let mut wide = vec![0.0; values.len()];
                T::widen_all(values, &mut wide);
                Cow::Owned(wide)
            }
        }
    }

    pub(crate) fn get(&self, column: usize) -> f32 {
        match self {
            Columns::Wide(values) => values[column],
            Columns::Same(values) => values[column].widen(),
        }
    }
}

/// The mutable counterpart.
#[derive(Debug)]
pub enum ColumnsMut<'a, T> {
    Wide(&'a mut [f32]),
    Same(&'a mut [T]),
}

impl<T: Element> ColumnsMut<'_, T> {
    pub(crate) fn store(self, values: &[f32]) {
        match self {
            ColumnsMut::Wide(out) => out.copy_from_slice(values),
            ColumnsMut::Same(out) => T::narrow_all(values, out),
        }
    }
}
