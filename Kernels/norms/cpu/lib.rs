//! The row operations on the CPU: threaded over rows and written for auto-vectorisation, and, in
//! [`plain`], as one naive loop each.
//!
//! All arithmetic is in f32, whatever the element type. Matrices are dense and row major, `columns`
//! wide. Sums have a fixed order, so results do not depend on the number of threads.

mod columns;
mod cross_entropy;
mod layernorm;
pub mod plain;
mod rmsnorm;
mod softmax;

pub use columns::{Columns, ColumnsMut};
pub use cross_entropy::{
    cross_entropy_backward, cross_entropy_forward, cross_entropy_forward_backward,
};
pub use host::Element;
pub use layernorm::{layernorm_backward, layernorm_forward, LayerNormSaved};
pub use rmsnorm::{fused_add_rmsnorm, rmsnorm_backward, rmsnorm_forward, RmsNormSaved};
pub use softmax::{softmax_backward, softmax_forward};
