//! What a seal says in the open about the results inside: counts, libraries, locks, and the state of the cards.

use crate::Collection;
use record::{Clocks, Meta};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// A file and its SHA-256.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Digest {
    pub name: String,
    pub sha256: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Summary {
    pub runs: usize,
    pub rows: usize,
    pub samples: usize,
    /// Libraries and prebuilt kernels that were timed or used for timing.
    pub libraries: Vec<Digest>,
    /// Digests of the lock files that the programs were built with.
    pub locks: Vec<String>,
    pub cards: Vec<Card>,
}

/// A card and its driver, with the extremes of all rows measured on it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Card {
    pub device: String,
    pub uuid: Option<String>,
    pub driver: Option<String>,
    pub cuda: Option<String>,
    pub clocks_locked: Option<bool>,
    pub power_limit_w: Option<f64>,
    pub clock_min_mhz: Option<f64>,
    pub clock_max_mhz: Option<f64>,
    pub power_max_w: Option<f64>,
    pub temperature_max_c: Option<f64>,
    pub throttle_reasons: BTreeSet<String>,
}

impl Summary {
    pub fn of(collection: &Collection) -> Summary {
        let rows = || collection.runs.iter().flat_map(|run| &run.file.rows);
        let mut libraries = BTreeSet::new();
        let used = collection
            .runs
            .iter()
            .flat_map(|run| &run.file.meta.libraries);
        for library in used.chain(rows().flat_map(|row| &row.contender.libraries)) {
            libraries.extend(library.files.iter().map(|(name, sha256)| Digest {
                name: format!("{} {name}", library.name),
                sha256: sha256.clone(),
            }));
        }
        libraries.extend(rows().filter_map(|row| {
            Some(Digest {
                name: format!("{} {}", row.contender.name, row.contender.version),
                sha256: row.contender.artifact_sha256.clone()?,
            })
        }));
        let locks: BTreeSet<&String> = collection
            .runs
            .iter()
            .filter_map(|run| run.file.meta.artifact_lock_sha256.as_ref())
            .collect();
        let mut cards: Vec<Card> = Vec::new();
        for run in &collection.runs {
            let new = Card::of(&run.file.meta);
            let place = cards
                .iter()
                .position(|card| card.is_same(&new))
                .unwrap_or_else(|| {
                    cards.push(new);
                    cards.len() - 1
                });
            for clocks in run.file.rows.iter().filter_map(|row| row.clocks.as_ref()) {
                cards[place].see(clocks);
            }
        }
        Summary {
            runs: collection.runs.len(),
            rows: collection.row_count(),
            samples: rows()
                .map(|row| row.samples_us.iter().flatten().count())
                .sum(),
            libraries: libraries.into_iter().collect(),
            locks: locks.into_iter().cloned().collect(),
            cards,
        }
    }
}

impl Card {
    fn of(meta: &Meta) -> Card {
        let gpu = meta.gpu.as_ref();
        Card {
            device: meta.device.name.clone(),
            uuid: gpu.and_then(|gpu| gpu.uuid.clone()),
            driver: meta.driver.clone(),
            cuda: meta.cuda.clone(),
            clocks_locked: gpu.and_then(|gpu| gpu.clocks_locked),
            power_limit_w: gpu.and_then(|gpu| gpu.power_limit_w),
            clock_min_mhz: None,
            clock_max_mhz: None,
            power_max_w: None,
            temperature_max_c: None,
            throttle_reasons: BTreeSet::new(),
        }
    }

    fn is_same(&self, other: &Card) -> bool {
        let known = |card: &Card| {
            (
                card.device.clone(),
                card.uuid.clone(),
                card.driver.clone(),
                card.cuda.clone(),
            )
        };
        let state = |card: &Card| (card.clocks_locked, card.power_limit_w);
        known(self) == known(other) && state(self) == state(other)
    }

    fn see(&mut self, clocks: &Clocks) {
        let most = |seen: &mut Option<f64>, value: Option<f64>| {
            *seen = value
                .map(|value| seen.map_or(value, |seen| seen.max(value)))
                .or(*seen);
        };
        most(&mut self.clock_max_mhz, clocks.max_mhz);
        most(&mut self.power_max_w, clocks.power_w);
        most(&mut self.temperature_max_c, clocks.temperature_c);
        if let Some(low) = clocks.min_mhz {
            self.clock_min_mhz = Some(self.clock_min_mhz.map_or(low, |seen| seen.min(low)));
        }
        self.throttle_reasons
            .extend(clocks.throttle_reasons.iter().cloned());
    }
}
