//! What is raced: suites of shapes as data, with their provenance, and the problems made of them.

mod decode_problem;
mod decode_shape;
mod decode_suites;
mod lengths;
mod mla_problem;
mod mla_suites;
mod norm_answers;
mod norm_op;
mod norm_problem;
mod norm_suites;
mod paging;
mod prefill_answers;
mod prefill_problem;
mod prefill_shape;
mod prefill_suites;
mod shape;

pub use decode_problem::{decode_tensor, DecodeProblem};
pub use decode_shape::{DecodeShape, KvLayout};
pub use decode_suites::{DecodeSuite, UnknownDecodeSuite};
pub use mla_problem::{mla_tensor, MlaDecodeProblem, MLA_LATENT, MLA_ROPE};
pub use mla_suites::{MlaShape, MlaSuite, UnknownMlaSuite};
pub use norm_op::{NormOp, UnknownOp};
pub use norm_problem::{NormProblem, NormTypes};
pub use norm_suites::{NormSuite, UnknownSuite};
pub use paging::{BadPageTable, PageTable};
pub use prefill_problem::{PrefillOp, PrefillProblem};
pub use prefill_shape::{BadPrefill, PrefillShape};
pub use prefill_suites::{PrefillSuite, UnknownPrefillSuite};
pub use shape::{BadShape, RowShape};
