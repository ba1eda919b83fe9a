//! Baseline artifacts: pinned in one lock, fetched, built, verified and uploaded by one tool.
//!
//! `lock` defines the artifacts; `cache` stores verified bytes by sha256; `fetch` gets missing ones
//! from a mirror, a store, the package registry or a `recipe`; `upload` puts them into a `store`.
//! Nothing is trusted before its size and sha256 match the lock, and every file is created by
//! rename, so an interrupted run leaves nothing half-done behind.

pub mod cache;
pub mod cancel;
mod compiled;
pub mod context;
pub mod credentials;
pub mod digest;
pub mod download;
pub mod error;
pub mod fetch;
pub mod gc;
pub mod http;
pub mod lock;
pub mod mirror;
pub mod npm;
pub mod pin;
pub mod pip;
pub mod process;
pub mod progress;
mod publish;
pub mod python;
pub mod recipe;
pub mod s3;
pub mod sbom;
pub mod store;
pub mod unpack;
pub mod upload;
pub mod variant;
pub mod verify;

pub use error::{Error, Result};
