//! The one oracle that all problems of a run take turns with.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use contender::{Problem, Slice};
use guest::{Oracle, OracleSource};
use tensor::Inputs;

/// Where the oracle of one problem at a time sits.
pub struct Seat {
    source: OracleSource,
    patience: Duration,
    /// With the problem that it is for.
    taken: Mutex<Option<(String, Oracle)>>,
}

impl Seat {
    pub fn new(source: OracleSource, patience: Duration) -> Self {
        Self {
            source,
            patience,
            taken: Mutex::default(),
        }
    }

    /// Asks for units of a problem, which `key` tells from every other. One that has failed is started anew.
    pub fn ask(
        &self,
        key: &str,
        problem: &dyn Problem,
        inputs: &Inputs,
        units: &[usize],
    ) -> Result<Vec<Vec<Slice>>, String> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let sitting = taken.take().filter(|(known, _)| known == key);
        let mut oracle = match sitting {
            Some((_, oracle)) => oracle,
            None => Oracle::start(&self.source, problem, self.patience)?,
        };
        let answers = oracle.ask(inputs, units)?;
        *taken = Some((key.to_owned(), oracle));
        Ok(answers)
    }
}
