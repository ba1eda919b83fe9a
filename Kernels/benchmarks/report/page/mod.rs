//! Published tables and pictures, generated from result files so that nobody types a number.
//!
//! A table sits between two comments, the first of which names it and the plan that describes it:
//!
//! ```text
//! <!-- table prefill of results/h200_tables.json -->
//! <!-- end of table -->
//! ```
//!
//! The plan's path is relative to the Markdown file, those of result files to the plan. A picture that the page links
//! to is one of its plans' if it has the name of one: the first's that has it.

mod plan;
mod races;
mod summary;
mod table;

use crate::ReportingError;
use races::Published;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

const START: &str = "<!-- table ";
const END: &str = "<!-- end of table -->";

/// Whether a text has tables for `Pages` to write.
pub fn has_tables(text: &str) -> bool {
    text.lines().any(|line| line.starts_with(START))
}

/// Plans with their result files, each read once for all pages.
#[derive(Debug, Default)]
pub struct Pages {
    loaded: HashMap<PathBuf, Published>,
}

impl Pages {
    /// The text of a Markdown file in `folder` with every table regenerated; `origin` names it in
    /// errors.
    pub fn rewrite(
        &mut self,
        text: &str,
        folder: &Path,
        origin: &str,
    ) -> Result<String, ReportingError> {
        let at = |line: usize| format!("{origin}:{}", line + 1);
        let mut written = String::new();
        let mut open_since = None;
        let mut in_code = false;
        for (number, line) in text.lines().enumerate() {
            // A page may show how a table is written.
            in_code ^= open_since.is_none() && line.starts_with("```");
            match (open_since, line) {
                (Some(_), END) => open_since = None,
                (Some(start), _) if line.starts_with(START) => return Err(unclosed(&at(start))),
                // The old table.
                (Some(_), _) => continue,
                (None, END) if !in_code => {
                    let problem = format!("'{END}' without a '{START}... -->' above it");
                    return Err(ReportingError::input(at(number), problem));
                }
                (None, _) if !in_code && line.starts_with(START) => {
                    let (name, plan) = parse_start(line, &at(number))?;
                    written += &format!("{line}\n\n{}\n", self.table(name, &folder.join(plan))?);
                    open_since = Some(number);
                    continue;
                }
                (None, _) => {}
            }
            written += line;
            written.push('\n');
        }
        match open_since {
            Some(start) => Err(unclosed(&at(start))),
            None => Ok(written),
        }
    }

    /// The pictures that a page links to, by their paths; none that no plan of the page can draw.
    pub fn pictures(&self, text: &str, folder: &Path) -> Vec<(PathBuf, &str)> {
        let links = text.split("](").skip(1);
        let links = links.filter_map(|rest| Some(rest.split_once(')')?.0));
        let starts = text.lines().filter(|line| line.starts_with(START));
        let plans = starts.filter_map(|line| Some(folder.join(parse_start(line, "").ok()?.1)));
        let plans: Vec<&Published> = plans.filter_map(|path| self.loaded.get(&path)).collect();
        let races = || plans.iter().flat_map(|published| published.all());
        let plots = || races().flat_map(|races| &races.plots);
        let drawn = |link: &str| {
            let path = folder.join(link);
            let name = link.rsplit('/').next()?.strip_suffix(".svg")?;
            let plot = plots().find(|plot| plot.name == name)?;
            Some((path, &*plot.svg))
        };
        links.filter_map(drawn).collect()
    }

    fn table(&mut self, name: &str, path: &Path) -> Result<String, ReportingError> {
        if !self.loaded.contains_key(path) {
            self.loaded.insert(path.to_owned(), Published::read(path)?);
        }
        let published = &self.loaded[path];
        let written = match name {
            "summary" => summary::summary(published),
            "losses" => summary::losses(published),
            "roofs" => Ok(table::roofs(published)),
            "runs" => Ok(table::runs(published)),
            _ => match published
                .plan
                .tables
                .iter()
                .find(|table| table.name == name)
            {
                Some(table) => table::table(table, published.races(table)),
                None => Err(format!("has no table '{name}'")),
            },
        };
        written.map_err(|problem| ReportingError::input(path.display(), problem))
    }
}

fn unclosed(place: &str) -> ReportingError {
    ReportingError::input(place, format!("the table has no end; add '{END}' below it"))
}

/// Name and plan of `<!-- table NAME of PLAN -->`.
fn parse_start<'a>(line: &'a str, place: &str) -> Result<(&'a str, &'a str), ReportingError> {
    line.strip_prefix(START)
        .and_then(|rest| rest.strip_suffix(" -->")?.split_once(" of "))
        .ok_or_else(|| {
            let problem =
                format!("'{line}' names no table: expected '{START}NAME of PLAN.json -->'");
            ReportingError::input(place, problem)
        })
}
