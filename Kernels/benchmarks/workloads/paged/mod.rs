//! What decode and latent attention share: page tables and lengths of sequences.

pub(crate) mod lengths;
mod table;

pub use table::{BadPageTable, PageTable};
