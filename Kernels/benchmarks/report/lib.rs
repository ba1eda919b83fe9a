//! Everything made from result files, without a GPU: merged files, summaries, regression checks,
//! plots, pages, exports.
//!
//! Input is a result file of `harness/record`, or a collection of them written by `merge`.

mod claims;
mod collection;
mod compare;
mod compare_text;
mod control;
mod environment;
mod error;
mod export;
mod history;
mod html;
mod import;
mod merge;
mod noise;
mod packed;
mod page;
mod plot;
mod repro;
mod scoreboard;
mod summarize;
mod verify;
mod views;
mod why;

pub use claims::{claims_markdown, judge, read_claims, Claim, Judgement, KNOWN_CLAIMS};
pub use collection::{Collection, Run, COLLECTION_VERSION};
pub use compare::{compare, Change, CompareOptions, Comparison, Method};
pub use compare_text::to_text;
pub use control::odd_controls;
pub use environment::differences;
pub use error::ReportingError;
pub use export::{to_github_action_benchmark, to_nvbench};
pub use history::{history, unmeasured};
pub use html::to_html;
pub use import::{
    import, import_trace, read_integers, read_requests, Imported, ImportedSuite, Request,
    TraceOptions, TraceShape,
};
pub use merge::{merge, Merged};
pub use noise::{normal_quantile, spread_between_runs};
pub use packed::{packed_for, read_text};
pub use page::{has_tables, Pages};
pub use plot::{plots, to_png, Plot};
pub use scoreboard::{losses, scoreboard, scoreboard_text, trust, Loss, Score, Scoreboard, Trust};
pub use summarize::summarize;
pub use verify::{verify, Conclusion, Verified, VerifyOptions};
pub use views::{views, View};
pub use why::{why, why_text, WhyOptions};
