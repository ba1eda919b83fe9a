//! For tests: a misbehaving HTTP server on loopback, a lock with a private cache, and a wheel.

mod fixture;
mod server;
mod wheel;

pub use fixture::{Fixture, QUICK};
pub use server::{Request, Response, Server};
pub use wheel::{write_wheel, write_wheel_for};
