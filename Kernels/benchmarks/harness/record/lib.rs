//! The result file of a run, and the ways to write it: JSON, CSV, Markdown, terminal table.
//!
//! The types are the format; `result.schema.json` says the same for other languages, and
//! docs/FILE_FORMAT.md for people. Pure except for `file`, which reads and replaces files.

mod against;
mod aliases;
mod bounds;
mod check;
mod csv;
mod error;
mod file;
#[cfg(test)]
mod file_test;
mod group;
mod key;
mod markdown;
pub mod markdown_table;
mod meta;
mod number;
mod processes;
#[cfg(test)]
mod render_test;
mod row;
mod small;
mod table;
#[cfg(test)]
mod test_samples;
mod workload_file;

pub use against::{add_missing_best, against_best, against_others, process_spreads, speedup_over};
pub use aliases::current_name;
pub use bounds::{check_text, drain_bounded, is_plain, printable, read_bounded, TEXT_MAX};
pub use check::{check, check_together, sound};
pub use csv::to_csv;
pub use error::RecordError;
pub use file::{from_json, read_json, to_json, write_atomic, write_json};
pub use group::{best_groups, controls, groups, losses, Group, BEST};
pub use key::RowKey;
pub use libraries::{Artifact, Library, Source};
pub use markdown::to_markdown;
pub use meta::{Build, Cache, Device, DeviceKind, Git, Gpu, Launch, Meta, Protocol, Roof, Timer};
pub use number::{count_text, interval_text, percent_text, ratio_text, significant, time_us_text};
pub use row::{
    Best, Budget, Clocks, Contender, ContenderKind, CrossCheck, DroppedSample, Errors, Metrics,
    ResultFile, Row, Speedup, Status, Time, Workload,
};
pub use table::{to_table, TableStyle};
pub use workload_file::{BadWorkloadFile, GivenWorkload, WorkloadFile, WORKLOADS_VERSION};

/// Version of the format that this crate writes, and the only one it reads. Adding an optional
/// field keeps it; removing a field, or changing its meaning, raises it.
pub const SCHEMA_VERSION: u32 = 1;

/// JSON Schema (draft 2020-12) of what this crate writes.
pub const RESULT_SCHEMA: &str = include_str!("result.schema.json");
