//! What decode and latent attention share: page tables, lengths of sequences, right answers.

pub(crate) mod answers;
pub(crate) mod lengths;
mod table;

pub use table::{BadPageTable, PageTable};
