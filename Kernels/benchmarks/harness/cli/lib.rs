//! The command line of every benchmark, and the flow of a run.
//!
//! ```text
//! run -> options -> selection of problems and contenders
//!     -> supervisor: starts a worker, which is this program again, and another for each process
//!        of the protocol
//!          worker: for each workload  buffers -> gate -> race -> validity -> outcomes
//!            planners: this program again, several times, for slow plans
//!     -> rows -> result file, table, exit code
//! ```
//!
//! The worker may crash or hang: the supervisor blames the contender that was running, starts a new
//! worker and measures the rest of the workload without it.

mod again;
mod bench;
mod blame;
mod control;
mod ends;
mod erased;
mod export;
mod jobs;
mod ledger;
mod listing;
mod measure;
mod meta;
mod missing;
mod options;
mod order;
mod outcome;
mod output;
mod pairs;
mod planners;
mod preset;
mod profile;
mod progress;
mod protocol;
mod releases;
mod repro;
mod resume;
mod roofs;
mod rows;
mod run;
mod selection;
mod shard;
mod shell;
mod supervisor;
mod usage;
mod utc;
mod voice;
mod watch;
mod worker;
mod workload;

pub use bench::{Bench, Choices, OwnOperation, Passes, Shortcut, WeightDType};
pub use numeric::DType;
pub use preset::Preset;
pub use run::{run, run_own, run_with_arguments};
pub use usage::UsageError;
pub use utc::now as utc_now;
