//! Kernels built on demand: variants of a baseline that the archives of a build do not have.
//!
//! `artifacts build quack --width 5120` leaves a folder per variant in the user's cache, and benches read it:
//!
//! ```text
//! <cache>/on-demand/quack-sm_90a-n5120/
//!     record.json     who built what: recipe, version, arch, digests of the archive and of the files below
//!     kernels.json    the recipe's description of its kernels
//!     kernels.so      CuTe DSL: launchers with the machine code inside
//!     kernels.bin     Triton: cubins, one after the other; DeepGEMM: one cubin
//! ```
//!
//! A file is used only if its bytes have the record's digest, and a record only if the recipe is of the version that
//! this program was built with.

mod gemm_kernel;
mod library;
mod record;
mod store;
mod variant;

pub use gemm_kernel::{GemmKernel, GemmLayout, GemmOperands};
pub use library::{CuteKernel, CuteLibrary};
pub use record::{digest, Record, RECORD, SCHEMA};
pub use store::{Built, Missing, Store};
pub use variant::{Recipe, Releases, Variant, Wanted};
