//! For tests: an HTTP server on loopback that misbehaves as told, a lock with a cache of its own,
//! and a wheel.

mod fixture;
mod server;
mod wheel;

pub use fixture::{Fixture, QUICK};
pub use server::{Request, Response, Server};
pub use wheel::{write_wheel, write_wheel_for};
