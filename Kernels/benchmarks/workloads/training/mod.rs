//! Activations, rotary embeddings and quantisation.

mod answers;
mod entry;
mod families;
mod op;
mod problem;
#[cfg(test)]
mod problem_test;
mod shape;
mod suites;

pub use op::{Activation, Pass, Scaling, TrainingOp};
pub use problem::TrainingProblem;
pub use shape::{BadTrainingShape, RopeShape, TrainingShape};
pub use suites::TrainingSuite;
