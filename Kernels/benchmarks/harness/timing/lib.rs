//! Timing: contenders race in paired rounds over rotating buffers until the ratio is known.
//!
//! One call of [`race`] measures one workload. In each round every contender runs once, in
//! Latin-square order, so heat, clocks and other load affect all alike. Before each
//! sample outputs are poisoned. Some rounds, which nobody can predict, are checked: their outputs go
//! through the gate; and some of these have inputs that nobody has seen before.

mod course;
mod energy;
mod lane;
mod plan;
mod race;
mod region;
mod roofs;
mod steady;
mod step;
mod trace;
mod validity;

pub use course::{Course, Rotation};
pub use energy::{energy_j, Energy};
pub use lane::Lane;
pub use plan::{CacheState, Launch, Plan, Timer};
pub use race::{race, LaneFailure, TimedSample, Timing};
pub use roofs::{floor_us, is_compute_bound, Bandwidth, Roofs};
pub use steady::{obstacle_to_steady, BLOCK};
pub use step::Step;
pub use trace::{Traced, TracedSample};
pub use validity::{validate, Limits, Validity};
