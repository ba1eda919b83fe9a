//! The rows of result files grouped by workload.

use super::plan::{Layers, Plan, Selection, Table};
use crate::{merge, plots, views, Collection, Plot, ReportingError};
use record::{ContenderKind, Meta, Row, RowKey, Speedup};
use std::collections::HashMap;
use std::path::Path;

/// One workload and its rows, one per contender.
#[derive(Debug)]
pub struct Race {
    rows: Vec<Row>,
    ours: String,
}

/// We against the fastest other contender.
#[derive(Debug)]
pub struct Duel<'a> {
    pub race: &'a Race,
    pub best: &'a Row,
    /// Their time over ours; absent if we have no time, which counts as a loss.
    pub ratio: Option<&'a Speedup>,
}

/// A plan and the rows that feed its tables.
#[derive(Debug)]
pub struct Published {
    pub plan: Plan,
    /// By the files that they are in, the plan's first.
    sets: Vec<(Vec<String>, Races)>,
}

/// The rows of one device, build and protocol.
#[derive(Debug)]
pub struct Races {
    all: Vec<Race>,
    /// Every picture of these rows.
    pub plots: Vec<Plot>,
    /// One per run, with its file name and number of rows.
    pub runs: Vec<(String, Meta, usize)>,
}

impl Race {
    fn is_of(&self, selection: &Selection) -> bool {
        let row = &self.rows[0];
        row.op == selection.op
            && row.dtype == selection.dtype
            && row.workload.suite == selection.suite
    }

    /// `op dtype suite/workload`.
    pub fn name(&self) -> String {
        let Row {
            op,
            dtype,
            workload,
            ..
        } = &self.rows[0];
        format!("{op} {dtype} {}/{}", workload.suite, workload.name)
    }

    pub fn ours(&self) -> Option<&Row> {
        self.timed(&self.ours)
    }

    /// The contender's row, if it has a time.
    pub fn timed(&self, contender: &str) -> Option<&Row> {
        let mut rows = self.rows.iter();
        rows.find(|row| row.contender.name == contender && row.time.is_some())
    }

    /// A contender's median time over ours, if both have one.
    pub fn ratio(&self, contender: &str) -> Option<f64> {
        Some(median_us(self.timed(contender)?) / median_us(self.ours()?))
    }

    /// We against the fastest baseline: the one with the lowest paired ratio, or median if we have
    /// no time. None if no baseline has a time.
    pub fn duel(&self) -> Result<Option<Duel<'_>>, String> {
        let ratio = match self.ours() {
            None => None,
            Some(ours) => ours.against_best.as_ref().map(|best| &best.speedup),
        };
        let best = match ratio {
            Some(ratio) => self.timed(&ratio.baseline),
            None => {
                let others = self.rows.iter().filter(|row| {
                    row.contender.kind == ContenderKind::Baseline && row.time.is_some()
                });
                others.min_by(|left, right| median_us(left).total_cmp(&median_us(right)))
            }
        };
        let Some(best) = best else { return Ok(None) };
        if self.ours().is_some() && ratio.is_none() {
            return Err(format!("{}: too few rounds for a ratio", self.name()));
        }
        Ok(Some(Duel {
            race: self,
            best,
            ratio,
        }))
    }

    /// Our ratio to the best with this many layers sharing a plan, where one of the two plans.
    pub fn ratio_with_plan(&self, layers: Layers) -> Option<f64> {
        let best = self.ours()?.against_best.as_ref()?;
        match layers {
            Layers::One => best.ratio_plan_1,
            Layers::ThirtyTwo => best.ratio_plan_32,
        }
    }
}

pub fn median_us(row: &Row) -> f64 {
    row.time.as_ref().map_or(f64::NAN, |time| time.median_us)
}

impl Published {
    pub fn read(path: &Path) -> Result<Self, ReportingError> {
        let plan = Plan::read(path)?;
        let read = |files: &[String]| Ok((files.to_vec(), Races::read(files, &plan.ours, path)?));
        let sets = plan.sets().into_iter().map(read);
        let sets = sets.collect::<Result<_, ReportingError>>()?;
        Ok(Self { plan, sets })
    }

    /// The rows that a table is made from.
    pub fn races(&self, table: &Table) -> &Races {
        let files = self.plan.files_of(table);
        let mut sets = self.sets.iter();
        let set = sets.find(|(of, _)| of == files);
        &set.expect("every table's files are read").1
    }

    /// All rows, the plan's own first.
    pub fn all(&self) -> impl Iterator<Item = &Races> {
        self.sets.iter().map(|(_, races)| races)
    }
}

impl Races {
    fn read(files: &[String], ours: &str, path: &Path) -> Result<Races, ReportingError> {
        let folder = path.parent().unwrap_or(Path::new(""));
        let files: Vec<_> = files.iter().map(|file| folder.join(file)).collect();
        let merged = merge(Collection::read_all(&files)?).collection;
        let runs = merged.runs.iter();
        let runs = runs.map(|run| {
            (
                run.origin.clone(),
                run.file.meta.clone(),
                run.file.rows.len(),
            )
        });
        let runs = runs.collect();
        let mut views = views(merged);
        if views.len() != 1 {
            let titles: Vec<&str> = views.iter().map(|view| &*view.title).collect();
            let problem = format!(
                "its files must have one device, build and protocol, not {}: {}",
                views.len(),
                titles.join("; ")
            );
            return Err(ReportingError::input(path.display(), problem));
        }
        let plots = plots(&views[0]);
        let mut all: Vec<Race> = Vec::new();
        let mut places: HashMap<RowKey, usize> = HashMap::new();
        for row in views.remove(0).file.rows {
            let mut key = RowKey::of(&row);
            key.contender.clear();
            let place = *places.entry(key).or_insert(all.len());
            if place == all.len() {
                all.push(Race {
                    rows: Vec::new(),
                    ours: ours.to_owned(),
                });
            }
            all[place].rows.push(row);
        }
        Ok(Races { all, plots, runs })
    }

    /// The workloads of a line; a line without workloads is a mistake in the plan.
    pub fn of(&self, selection: &Selection) -> Result<Vec<&Race>, String> {
        let races: Vec<&Race> = self
            .all
            .iter()
            .filter(|race| race.is_of(selection))
            .collect();
        match races.is_empty() {
            false => Ok(races),
            true => Err(format!(
                "the line '{}' has no rows: op {}, {}, suite {}",
                selection.title, selection.op, selection.dtype, selection.suite
            )),
        }
    }

    /// The workloads of all lines of a table.
    pub fn of_table(&self, table: &Table) -> Result<Vec<&Race>, String> {
        let lines: Result<Vec<_>, _> = table.rows.iter().map(|line| self.of(line)).collect();
        Ok(lines?.concat())
    }
}
