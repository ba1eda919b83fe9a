//! Which rows of which result files feed which published table.

use crate::ReportingError;
use serde::Deserialize;
use std::path::Path;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Result files and collections, of one device and one build, for all tables without their own.
    pub files: Vec<String>,
    /// The contender that all others are compared with.
    pub ours: String,
    /// The smallest loss that gets its own line, e.g. 0.05.
    pub loss_min: f64,
    pub tables: Vec<Table>,
}

/// One table, which is one family in the summary.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    pub name: String,
    /// Title of the first column, and the family's name.
    pub title: String,
    /// Where its rows are, if not in the plan's files.
    pub files: Option<Vec<String>>,
    pub columns: Vec<Column>,
    pub rows: Vec<Selection>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Column {
    pub title: String,
    pub show: Show,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Show {
    /// Our minimum and maximum rate of arithmetic.
    Tflops,
    /// The same of memory.
    Tbps,
    /// The geometric mean, minimum and maximum of our share of roof, and which roofs.
    RoofShare,
    /// This contender's median time over ours.
    Against(String),
    /// The fastest other's time over ours, each with its plan's share for one layer.
    BestWithPlan(Layers),
}

/// Layers that share a plan.
#[derive(Debug, Clone, Copy, Deserialize)]
pub enum Layers {
    #[serde(rename = "1")]
    One,
    #[serde(rename = "32")]
    ThirtyTwo,
}

/// The workloads of one line: those of a suite for an op and a type.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Selection {
    pub title: String,
    pub op: String,
    pub suite: String,
    #[serde(default = "bf16")]
    pub dtype: String,
}

fn bf16() -> String {
    "bf16".to_owned()
}

impl Plan {
    pub fn read(path: &Path) -> Result<Plan, ReportingError> {
        let read = |error: std::io::Error| ReportingError::input(path.display(), error);
        let text = crate::read_text(path).map_err(read)?;
        let plan = record::check_text(&text).and_then(|()| serde_json::from_str(&text));
        plan.map_err(|error| {
            ReportingError::input(path.display(), format!("is not a plan of tables: {error}"))
        })
    }

    /// The files of each table's rows; every set once, the plan's first.
    pub fn sets(&self) -> Vec<&[String]> {
        let mut sets: Vec<&[String]> = vec![&self.files];
        for table in &self.tables {
            let files = self.files_of(table);
            if !sets.contains(&files) {
                sets.push(files);
            }
        }
        sets
    }

    pub fn files_of<'p>(&'p self, table: &'p Table) -> &'p [String] {
        table.files.as_ref().unwrap_or(&self.files)
    }
}

impl Table {
    /// The display name of a contender: the title of its column, else its name.
    pub fn title_of<'a>(&'a self, contender: &'a str) -> &'a str {
        let mut columns = self.columns.iter();
        columns
            .find(|column| matches!(&column.show, Show::Against(name) if name == contender))
            .map_or(contender, |column| &column.title)
    }
}
