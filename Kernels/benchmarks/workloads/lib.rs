//! What is raced: suites of shapes as data, with their provenance, and the problems built from them.

mod arithmetic;
mod attention_kinds;
mod decode;
mod gemm;
mod given;
#[cfg(test)]
mod given_test;
pub mod kinds;
mod mla;
mod norms;
mod nsa;
mod paged;
mod prefill;
mod rows;
mod suite;
#[cfg(test)]
mod testing;
mod training;
mod unseen;

pub use decode::{DecodeProblem, DecodeShape, DecodeSuite, KvLayout};
pub use gemm::{
    BadGemm, DenseWorkload, GemmProblem, GemmShape, GemmSuite, GroupKind, GroupedGemmSuite,
    GroupedWorkload, RowLayout, ScaleTiles, GROUP_ALIGNMENT, SCALE_BLOCK,
};
pub use given::LIST_MAX;
pub use mla::{MlaDecodeProblem, MlaShape, MlaSuite, MLA_LATENT, MLA_ROPE, MLA_WIDTH};
pub use norms::{NormOp, NormProblem, NormSuite, NormTypes};
pub use nsa::{BadNsa, NsaOp, NsaProblem, NsaShape, NsaSuite, Selection};
pub use paged::{BadPageTable, KvType, PageTable};
pub use prefill::{BadPrefill, PrefillOp, PrefillProblem, PrefillShape, PrefillSuite};
pub use rows::RowShape;
pub use suite::UnknownSuite;
pub use training::{
    Activation, BadTrainingShape, Pass, RopeShape, Scaling, TrainingOp, TrainingProblem,
    TrainingShape, TrainingSuite,
};
