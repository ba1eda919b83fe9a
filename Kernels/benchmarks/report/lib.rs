//! Everything made from result files, without a GPU: merged files, summaries, regression checks,
//! plots, pages, exports.
//!
//! Input is a result file of `harness/record`, or a collection of them written by `merge`.

mod choose;
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
mod model;
mod noise;
mod packed;
mod page;
mod plot;
mod policy;
mod releases;
mod repro;
mod scoreboard;
mod seal;
mod summarize;
mod verify;
mod views;
mod why;

pub use choose::{
    choose, panel, table, to_cpp, Answer, Question, Rule, Shape, Table, PANEL_SCRIPT,
};
pub use claims::{claims_markdown, judge, read_claims, Claim, Judgement, KNOWN_CLAIMS};
pub use collection::{Collection, Run, COLLECTION_VERSION, SUITE_RESULTS};
pub use compare::{compare, Change, CompareOptions, Comparison, Method};
pub use compare_text::to_text;
pub use control::odd_controls;
pub use environment::differences;
pub use error::ReportingError;
pub use export::{to_github_action_benchmark, to_nvbench};
pub use history::{
    history, history_json, history_page, parse_lines, series, unmeasured, HistoryLine, Series,
};
pub use html::to_html;
pub use import::{
    import, import_trace, read_integers, read_requests, Imported, ImportedSuite, Request,
    TraceOptions, TraceShape,
};
pub use merge::{merge, Merged};
pub use model::{
    find_model, known_models, model_questions, step, step_text, Estimate, Model, Phase, Step,
    StepOptions, Swap,
};
pub use noise::{normal_quantile, spread_between_runs};
pub use packed::{packed_for, read_text};
pub use page::{has_tables, Pages};
pub use plot::{plots, to_png, Plot};
pub use policy::content_policy;
pub use releases::releases_markdown;
pub use scoreboard::{losses, scoreboard, scoreboard_text, trust, Loss, Score, Scoreboard, Trust};
pub use seal::{
    digest, is_seal, open, parse_public_key, read_or_make_key, seal, Card, Digest, Evidence,
    Sealed, Statement, Summary,
};
pub use summarize::summarize;
pub use verify::{verify, Conclusion, Verified, VerifyOptions};
pub use views::{views, View};
pub use why::{why, why_text, Which, WhyOptions};
