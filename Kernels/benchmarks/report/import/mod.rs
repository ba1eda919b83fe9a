//! Shapes from elsewhere: FlashInfer-Bench's definitions and workloads, and traces of requests to
//! serving systems, as workload files of our benches.
//!
//! Whatever no bench supports, or a trace does not say, is reported, not dropped and not guessed.

mod attention;
mod case;
mod definition;
mod replay;
mod requests;
mod road;
mod safetensors;
mod serving;
mod shape;
mod strata;

pub use requests::{read_requests, Request};
pub use safetensors::read_integers;
pub use serving::{import_trace, TraceOptions, TraceShape};

use crate::ReportingError;
use case::{Case, Refusal};
use definition::{Definition, Workload};
use record::{is_plain, GivenWorkload, WorkloadFile, WORKLOADS_VERSION};
use road::Road;
use shape::Shape;
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

/// Characters of a workload's identifier that are kept.
const UUID_MAX: usize = 100;

#[derive(Debug, Default, PartialEq)]
pub struct Imported {
    pub suites: Vec<ImportedSuite>,
    /// Definitions and workloads that no bench supports, with the reason.
    pub left_out: Vec<String>,
}

/// The shapes of one definition.
#[derive(Debug, PartialEq)]
pub struct ImportedSuite {
    /// The bench with its operation and type.
    pub command: String,
    /// The same shapes for `--configs`, where that can name them.
    pub configs: Option<Vec<String>>,
    pub workloads: WorkloadFile,
}

impl ImportedSuite {
    pub fn file_name(&self) -> String {
        format!("{}-{}.json", self.workloads.bench, self.workloads.suite)
    }
}

/// `files` are definitions and the lines of workload files, with the paths that they were read from.
pub fn import(files: &[(PathBuf, String)]) -> Result<Imported, ReportingError> {
    let mut imported = Imported::default();
    for (definition, mut workloads) in definition::parse(files)? {
        if workloads.is_empty() {
            // Enough where all axes are constant.
            workloads.push(Workload::default());
        }
        let (suite, reasons) = suite(&definition, &workloads)?;
        imported.suites.extend(suite);
        let name = &definition.name;
        let told = |(reason, count): (String, usize)| match count == workloads.len() {
            true => format!("{name}: {reason}"),
            false => format!("{name}, {count} of {} workloads: {reason}", workloads.len()),
        };
        imported.left_out.extend(reasons.into_iter().map(told));
    }
    Ok(imported)
}

/// The suite, if there is a shape for it, and why workloads were left out, with their count.
fn suite(
    definition: &Definition,
    workloads: &[Workload],
) -> Result<(Option<ImportedSuite>, BTreeMap<String, usize>), ReportingError> {
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    let known = Road::of(definition);
    let (road, command) = match known.and_then(|road| Ok((road.command(definition)?, road))) {
        Ok((command, road)) => (road, command),
        Err(reason) => return Ok((None, [(reason, workloads.len())].into())),
    };
    // Each shape once, with the first workload that has it and how many do.
    let mut shapes: Vec<(Shape, &Workload, usize)> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for workload in workloads {
        let case = Case {
            definition,
            workload,
        };
        match (road.shape)(&case) {
            Ok(shape) => {
                let text = serde_json::Value::from(shape.members.clone()).to_string();
                let place = *places.entry(text).or_insert(shapes.len());
                match shapes.get_mut(place) {
                    Some((_, _, count)) => *count += 1,
                    None => shapes.push((shape, workload, 1)),
                }
            }
            Err(Refusal::LeftOut(reason)) => *reasons.entry(reason).or_default() += 1,
            Err(Refusal::Bad(error)) => return Err(error),
        }
    }
    if shapes.is_empty() {
        return Ok((None, reasons));
    }
    let configs = shapes
        .iter()
        .map(|(shape, ..)| shape.config.clone())
        .collect();
    let workloads = WorkloadFile {
        workloads_version: WORKLOADS_VERSION,
        bench: road.bench.to_owned(),
        suite: definition.name.clone(),
        workloads: given(definition, &road, shapes),
    };
    let suite = ImportedSuite {
        command,
        configs,
        workloads,
    };
    Ok((Some(suite), reasons))
}

fn given(
    definition: &Definition,
    road: &Road,
    shapes: Vec<(Shape, &Workload, usize)>,
) -> Vec<GivenWorkload> {
    let mut names: HashMap<String, usize> = HashMap::new();
    let given = |(shape, workload, count): (Shape, &Workload, usize)| {
        let same = names.entry(shape.label.clone()).or_default();
        *same += 1;
        let name = match *same {
            1 => shape.label,
            number => format!("{}_{number}", shape.label),
        };
        let uuid: String = workload
            .uuid
            .chars()
            .filter(|c| is_plain(*c))
            .take(UUID_MAX)
            .collect();
        let from = match &*uuid {
            "" => String::new(),
            uuid => format!(", workload {uuid}"),
        };
        let others = match count {
            1 => String::new(),
            _ => format!(" and {} more", count - 1),
        };
        GivenWorkload {
            name,
            op: road.op.map(str::to_owned),
            shape: shape.members,
            provenance: format!(
                "FlashInfer-Bench definition {}{from}{others}{}",
                definition.name, shape.note
            ),
            weight: Some(count as f64),
        }
    };
    shapes.into_iter().map(given).collect()
}

#[cfg(test)]
mod tests;
