//! Shared by decode and latent attention: page tables, sequence lengths, correct answers.

pub(crate) mod answers;
pub(crate) mod lengths;
mod table;

pub(crate) use table::in_any_order;
pub use table::{BadPageTable, PageTable};
