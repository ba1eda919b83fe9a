//! Commands with options of their own: one file each, from the options to the exit code.

mod choose;
mod history;
mod import;
mod model;
mod seal;
mod verify;
mod why;

pub use choose::{choose, ChooseArguments};
pub use history::{history, HistoryArguments};
pub use import::run as import;
pub use model::{model, ModelArguments};
pub use seal::{seal, SealArguments};
pub use verify::{verify, VerifyArguments};
pub use why::{why, WhyArguments};
