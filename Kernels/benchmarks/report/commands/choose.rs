//! `report choose`: the fastest contender for a shape or for a model's shapes, or a table for all of them.

use crate::{load, print, write};
use clap::{Args, ValueEnum};
use report_lib::{
    choose as choose_for, find_model, model_questions, table, to_cpp, Phase, Question,
    ReportingError, Table, View,
};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;

/// Nothing was measured near enough to say.
const CANNOT_TELL: u8 = 3;

#[derive(Debug, Args)]
pub struct ChooseArguments {
    /// Result files, collections, and folders of suites
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// The operation, such as gemm
    #[arg(long, value_name = "OP")]
    pub op: Option<String>,
    /// The type, if the operation was measured in several
    #[arg(long, value_name = "DTYPE")]
    pub dtype: Option<String>,
    /// Axes with values, such as m=64,n=4096,k=7168, or the name of a measured workload
    #[arg(long, value_name = "SHAPE", requires = "op")]
    pub shape: Option<String>,
    /// All operations of this model's layer instead, such as llama-3.1-8b
    #[arg(long, value_name = "NAME", conflicts_with_all = ["op", "shape"], requires_all = ["batch", "context"])]
    pub model: Option<String>,
    /// Sequences of the model's step
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub batch: Option<u64>,
    /// Tokens of each sequence
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub context: Option<u64>,
    /// Write a dispatch table over regions of shapes, for all operations or for --op
    #[arg(long, value_enum, conflicts_with_all = ["shape", "model"])]
    pub table: Option<TableFormat>,
    /// The table's file [default: print it]
    #[arg(short, long, value_name = "FILE", requires = "table")]
    pub output: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TableFormat {
    Json,
    Csv,
    /// A C++17 header
    Cpp,
}

pub fn choose(arguments: &ChooseArguments) -> Result<ExitCode, ReportingError> {
    let views = load(&arguments.files)?;
    if let Some(format) = arguments.table {
        let table = table(&views, arguments.op.as_deref())?;
        let text = match format {
            TableFormat::Json => Table::to_json(&table),
            TableFormat::Csv => table.to_csv(),
            TableFormat::Cpp => to_cpp(&table),
        };
        match &arguments.output {
            Some(path) => write(path, text.as_bytes(), &arguments.files)?,
            None => print(&text),
        }
        return Ok(ExitCode::SUCCESS);
    }
    let questions: Vec<(String, String, String)> = match (&arguments.model, &arguments.op, &arguments.shape) {
        (Some(name), ..) => {
            let (batch, context) = (arguments.batch.unwrap_or(1), arguments.context.unwrap_or(1));
            let phases = [Phase::Decode, Phase::Prefill];
            let model = find_model(name)?;
            phases.iter().flat_map(|phase| model_questions(&model, *phase, batch, context)).collect()
        }
        (None, Some(op), Some(shape)) => vec![(String::new(), op.clone(), shape.clone())],
        _ => {
            return Err(ReportingError::Usage(
                "nothing is asked: give --op and --shape, or --model with --batch and --context, or --table".to_owned(),
            ))
        }
    };
    let mut told = true;
    for (part, op, shape) in &questions {
        let question = Question {
            op,
            dtype: arguments.dtype.as_deref(),
            shape,
        };
        // Runs of one operation each are views of their own: only those that have it are asked.
        let has_op = |view: &&View| {
            view.file
                .rows
                .iter()
                .any(|row| row.op == *op && row.time.is_some())
        };
        let mut asked: Vec<&View> = views.iter().filter(has_op).collect();
        if asked.is_empty() && part.is_empty() {
            return Err(unknown(op, &views));
        } else if asked.is_empty() {
            asked.extend(views.first());
        }
        for view in asked {
            match choose_for(view, &question) {
                Ok(answer) => {
                    told &= answer.contender.is_some();
                    let part = if part.is_empty() {
                        String::new()
                    } else {
                        format!("{part}: ")
                    };
                    print(&format!("{part}{}", answer.text));
                }
                // One part of a model without rows leaves the others as they are.
                Err(ReportingError::Usage(reason)) if !part.is_empty() => {
                    told = false;
                    print(&format!(
                        "{part}: {op} {shape} on {}\n  cannot tell: {reason}\n",
                        view.title
                    ));
                }
                Err(error) => return Err(error),
            }
        }
    }
    Ok(ExitCode::from(if told { 0 } else { CANNOT_TELL }))
}

fn unknown(op: &str, views: &[View]) -> ReportingError {
    let rows = views.iter().flat_map(|view| &view.file.rows);
    let timed = rows.filter(|row| row.time.is_some());
    let ops: BTreeSet<&str> = timed.map(|row| row.op.as_str()).collect();
    let ops: Vec<&str> = ops.into_iter().collect();
    ReportingError::Usage(format!(
        "'{op}' has no time in these files; there are {}",
        ops.join(", ")
    ))
}
