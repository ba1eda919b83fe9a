//! Merges collections: each row once, with every run's meta.

use crate::views::Place;
use crate::{Collection, Run};
use record::RowKey;
use std::collections::HashMap;

#[derive(Debug)]
pub struct Merged {
    pub collection: Collection,
    /// Rows left out because a later run has the same row, from the same build on the same device.
    pub duplicates: usize,
}

/// The later run wins: somebody thought it worth measuring again.
pub fn merge(mut collection: Collection) -> Merged {
    // Stable, so equal times keep the order of the command line; times are RFC 3339 in UTC.
    collection
        .runs
        .sort_by(|left, right| left.file.meta.started_at.cmp(&right.file.meta.started_at));
    let mut last: HashMap<(Place, RowKey), (usize, usize)> = HashMap::new();
    for (run_index, run) in collection.runs.iter().enumerate() {
        let place = Place::of(&run.file.meta);
        for (row_index, row) in run.file.rows.iter().enumerate() {
            last.insert((place.clone(), RowKey::of(row)), (run_index, row_index));
        }
    }
    let before = collection.row_count();
    let kept: std::collections::HashSet<(usize, usize)> = last.into_values().collect();
    let runs = collection.runs.into_iter().enumerate();
    let runs: Vec<Run> = runs
        .map(|(run_index, mut run)| {
            let mut row_index = 0;
            run.file.rows.retain(|_| {
                row_index += 1;
                kept.contains(&(run_index, row_index - 1))
            });
            run
        })
        .collect();
    let collection = Collection { runs };
    Merged {
        duplicates: before - collection.row_count(),
        collection,
    }
}
