//! Contenders that strangers bring: shared libraries with the functions of `Kernels/contender.h`.
//!
//! On the CPU a library lives in a process of its own, the guest, which is this program again:
//!
//! ```text
//! worker: inputs, clock, oracle, seeds          guest: the library, nothing else
//!   Process --- socket: supports, bind, facts ---> serve
//!           --- page: go, done -------------------> spins, calls
//!           --- memory of its own tensors --------> mapped
//!           --- stop, continue ------------------> only runs while it is called
//! ```
//!
//! It has no files, no descriptors, no network, no other processes, and no memory of anybody else. On CUDA, where two
//! processes would take turns on the GPU, the worker loads the library itself, and the row says so. The oracle of an
//! operation that somebody brings lives in such a process on every device.

mod answers;
mod contender;
mod library;
mod mailbox;
mod message;
mod oracle;
mod output;
mod process;
mod sandbox;
mod serve;
mod source;
mod statement;

pub use contender::Guest;
pub use oracle::{Oracle, OracleSource};
pub use serve::{serve, ARGUMENT};
pub use source::{Source, SourceError};
