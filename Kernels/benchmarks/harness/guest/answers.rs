//! A loaded oracle: its one function, checked once, and asked.

use std::path::Path;

use contender_abi as abi;
use libloading::os::unix::Library as Handle;

use crate::library::{describe, list, text};
use crate::statement::{Passed, Statement};

pub struct AnswerLibrary {
    answer: abi::Answer,
    pub name: String,
    pub version: String,
    ops: Option<Vec<String>>,
    /// Its code must stay while anything is called.
    _handle: Handle,
}

impl AnswerLibrary {
    /// Loads a library and checks what it says about itself; the error is a sentence.
    pub fn open(path: &Path) -> Result<Self, String> {
        // SAFETY: the header says so.
        let (handle, description): (_, abi::OracleDescription) =
            unsafe { describe(path, "contender_oracle", "contender_oracle_description") }?;
        let answer = description.answer.ok_or("has no function answer()")?;
        // SAFETY: texts and a list that the header describes.
        unsafe {
            Ok(Self {
                answer,
                name: text(description.name).unwrap_or_default(),
                version: text(description.version).unwrap_or_default(),
                ops: list(description.ops),
                _handle: handle,
            })
        }
    }

    /// Tensors to be asked about; an error if it does not answer the operation.
    pub fn bind(&self, statement: &Statement, addresses: &[usize]) -> Result<Passed, String> {
        let op = &statement.op;
        match self.ops.as_ref().filter(|ops| !ops.contains(op)) {
            Some(ops) => Err(format!("answers {}, not {op}", ops.join(", "))),
            None => Ok(Passed::in_f64(statement, addresses)),
        }
    }

    pub fn answer(&self, passed: &Passed, unit: u64, units: u64) -> Result<(), String> {
        // SAFETY: the structures and the tensors live until it returns.
        match unsafe { (self.answer)(&passed.problem, unit, units) } {
            0 => Ok(()),
            code => Err(format!("answer() returned {code} for unit {unit}")),
        }
    }
}
