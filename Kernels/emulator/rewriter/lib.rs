//! Rewrites PTX for sm_100a into PTX for sm_90a, with an emulation of what Hopper lacks: a second implementation, for
//! shapes that are too large for the interpreter.
//!
//! The interpreter's table says what each instruction is; what it does not know is refused with kernel, line and
//! instruction. The rest of the text stays as it is. Products are done by the thread that issues them, in the
//! interpreter's order of sums.

#[cfg(test)]
mod agreement;
mod arithmetic;
mod code;
mod emulation;
mod narrow;
mod rules;

use std::collections::BTreeMap;
use std::ops::Range;

use machine::Meaning;
use syntax::{Function, Instruction};

/// When tensor cores' work is done: all that is asynchronous there is the issuing thread's here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// As it is issued.
    AtOnce,
    /// When the thread that issued it waits for something itself, or ends.
    Late,
}

#[derive(Clone, Copy, Debug)]
pub struct Options {
    pub when: When,
    /// Blocks that have tensor memory at the same time; further ones wait for their turn.
    pub slots: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            when: When::AtOnce,
            slots: 256,
        }
    }
}

/// A module that cannot be rewritten.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{0}")]
    Machine(#[from] machine::Error),
    #[error("the module is for {0}; only sm_100a is rewritten")]
    Target(String),
    #[error("{function}: PTX line {line}: {opcode}: {reason}")]
    Instruction {
        function: String,
        line: u32,
        opcode: String,
        reason: String,
    },
}

impl Error {
    fn at(function: &Function, instruction: &Instruction, reason: impl Into<String>) -> Self {
        Self::Instruction {
            function: function.name.clone(),
            line: instruction.line,
            opcode: instruction.opcode.to_string(),
            reason: reason.into(),
        }
    }
}

/// The text for sm_90a of a text for sm_100a.
///
/// # Errors
///
/// Where the text is not PTX for sm_100a, or has an instruction that is not known.
pub fn rewrite(text: &str, options: &Options) -> Result<String, Error> {
    let loaded = machine::Module::load(text)?;
    if loaded.target() != "sm_100a" {
        return Err(Error::Target(loaded.target().to_owned()));
    }
    let meanings = loaded.meanings()?;
    let module = loaded.syntax();
    let mut changes = BTreeMap::from([(
        module.target_span.start,
        (module.target_span.end, "sm_90a".to_owned()),
    )]);
    let emulated = meanings.values().any(Meaning::is_emulated);
    let mut rules = rules::Rules::new(module, options.when, emulated);
    for function in module.functions.iter().filter(|found| found.has_body) {
        rules.enter(function);
        for instruction in &function.instructions {
            let Some(meaning) = meanings.get(&instruction.span.start) else {
                if instruction.opcode.split('.').next() == Some("call") {
                    continue;
                }
                return Err(Error::at(function, instruction, "no kernel reaches it"));
            };
            if let Some(code) = rules.rewrite(instruction, meaning)? {
                let Range { start, end } = instruction.span;
                let stays = matches!(meaning, Meaning::Waits);
                changes.insert(start, (if stays { start } else { end }, code));
            }
        }
        if let Some(prologue) = rules.prologue() {
            changes.insert(function.body_start, (function.body_start, prologue));
        }
    }
    if emulated {
        let code = emulation::text(options);
        changes.insert(module.head_end, (module.head_end, code));
    }
    let (mut out, mut from) = (String::with_capacity(text.len() * 2), 0);
    for (start, (end, code)) in changes {
        out.push_str(&text[from..start]);
        out.push_str(&code);
        from = end;
    }
    out.push_str(&text[from..]);
    Ok(out)
}
