//! What is left to measure: every problem once per process of the protocol.

use std::collections::{HashMap, HashSet};

use record::{ResultFile, Row, RowKey};

use crate::options::Options;
use crate::order::order;
use crate::resume::{self, Earlier};
use crate::selection::Selection;
use crate::UsageError;

/// One problem in one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    pub process: usize,
    /// Index into the selection's problems.
    pub problem: usize,
}

/// All jobs, process by process: the processes of a problem are as far apart as the run allows.
fn jobs(problems: &[usize], processes: usize, done: impl Fn(usize) -> usize) -> Vec<Job> {
    let mut jobs = Vec::new();
    for process in 0..processes {
        let lacking = problems.iter().filter(|problem| done(**problem) <= process);
        jobs.extend(lacking.map(|&problem| Job { process, problem }));
    }
    jobs
}

/// The jobs of a run. When resuming, existing rows are copied into the file.
pub fn left(
    selection: &Selection,
    options: &Options,
    file: &mut ResultFile,
) -> Result<Vec<Job>, UsageError> {
    let problems = &selection.problems;
    let (all, processes) = (
        order(problems, options.how.max_minutes.is_some()),
        options.processes(),
    );
    let Some(path) = &options.how.resume else {
        return Ok(jobs(&all, processes, |_| 0));
    };
    let Some(earlier) = Earlier::read(path, &file.meta)? else {
        workspace::tell!("nothing to resume: {} does not exist", path.display());
        return Ok(jobs(&all, processes, |_| 0));
    };
    for contender in &selection.contenders {
        earlier.check_same(path, contender.identity())?;
    }
    let keys = |problem: usize| {
        let contenders = selection.contenders_of(problem);
        contenders.map(move |each| resume::key(&*problems[problem], &each.identity().name))
    };
    let done: HashMap<usize, usize> = all
        .iter()
        .map(|&problem| (problem, earlier.processes(keys(problem))))
        .collect();
    let untouched = all.iter().filter(|problem| done[*problem] == 0);
    let anew: HashSet<RowKey> = untouched.flat_map(|&problem| keys(problem)).collect();
    let complete = done.values().filter(|done| **done >= processes).count();
    workspace::tell!(
        "{complete} of {} workloads are already measured",
        problems.len()
    );
    earlier.hand_over(file, &anew);
    Ok(jobs(&all, processes, |problem| done[&problem]))
}

/// Problems of which no job is left.
pub fn finished(selection: &Selection, left: &[Job]) -> usize {
    let unfinished: HashSet<usize> = left.iter().map(|job| job.problem).collect();
    selection.problems.len() - unfinished.len()
}

/// The rows of a file by what they measure.
pub struct Places(HashMap<RowKey, usize>);

impl Places {
    pub fn of(rows: &[Row]) -> Self {
        let keys = rows.iter().enumerate();
        Self(keys.map(|(place, row)| (RowKey::of(row), place)).collect())
    }

    /// Adds the rows of one process to those of the others, and compares them with each other.
    pub fn add(&mut self, fresh: Vec<Row>, rows: &mut Vec<Row>, compare: impl FnOnce(&mut [Row])) {
        let mut race: Vec<Row> = fresh
            .into_iter()
            .map(|row| match self.0.get(&RowKey::of(&row)) {
                None => row,
                Some(&place) => {
                    let mut earlier = rows[place].clone();
                    earlier.add_process(row);
                    earlier
                }
            })
            .collect();
        compare(&mut race);
        for row in race {
            let place = *self.0.entry(RowKey::of(&row)).or_insert(rows.len());
            if place == rows.len() {
                rows.push(row);
            } else {
                rows[place] = row;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_come_one_after_the_other_and_done_ones_not_again() {
        let place = |job: &Job| (job.process, job.problem);
        let all: Vec<_> = jobs(&[7, 5], 2, |_| 0).iter().map(place).collect();
        assert_eq!(all, [(0, 7), (0, 5), (1, 7), (1, 5)]);
        let rest = jobs(&[7, 5], 3, |problem| if problem == 7 { 1 } else { 3 });
        assert_eq!(rest.iter().map(place).collect::<Vec<_>>(), [(1, 7), (2, 7)]);
    }
}
