//! The row operations on the CPU: threaded over rows and written for auto-vectorisation, and, in the
//! modules `plain`, as one naive loop each: the baseline for the others.
//!
//! All arithmetic is in f32, whatever the element type. Matrices are dense and row major, `columns`
//! wide. Sums have a fixed order, so results do not depend on the number of threads.

mod columns;
pub mod cross_entropy;
pub mod layernorm;
mod naive;
pub mod rmsnorm;
pub mod softmax;

pub use columns::{Columns, ColumnsMut};
pub use host::Element;
