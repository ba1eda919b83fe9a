//! The functions of the CUDA runtime that host code of kernels calls, and those that nvcc's own code calls.
//!
//! Each takes what its namesake takes; pointers are trusted as far as the namesake trusts them.

mod device;
mod error;
mod launch;
mod library;
mod loaded;
mod memory;
mod objects;
mod stream;
