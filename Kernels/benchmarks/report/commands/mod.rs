//! Commands with options of their own: one file each, from the options to the exit code.

mod choose;
mod history;
mod model;
mod seal;
mod verify;

pub use choose::{choose, ChooseArguments};
pub use history::{history, HistoryArguments};
pub use model::{model, ModelArguments};
pub use seal::{seal, SealArguments};
pub use verify::{verify, VerifyArguments};
