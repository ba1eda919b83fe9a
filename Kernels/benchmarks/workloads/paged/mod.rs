//! Shared by decode and latent attention: page tables, sequence lengths, correct answers.

pub(crate) mod answers;
mod kv_type;
pub(crate) mod lengths;
mod table;

pub use kv_type::KvType;
pub(crate) use kv_type::CODE;
pub(crate) use table::in_any_order;
pub use table::{BadPageTable, PageTable};
