//! Many runs: a line for each, and from all lines the trends, with changes told from noise.

mod changes;
mod line;
mod page;
mod series;

pub use changes::{changes, Change, Point, RUNS_MIN};
pub use line::{history, unmeasured};
pub use page::{history_json, history_page};
pub use series::{parse_lines, series, HistoryLine, Series};
