//! What goes wrong, and where.

use std::fmt;

/// What an instruction cannot do; the engine adds where it stands.
#[derive(Clone, Debug)]
pub struct Trap {
    pub lane: Option<u32>,
    pub message: String,
}

impl Trap {
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            lane: None,
            message: message.into(),
        }
    }

    pub fn in_lane(lane: u32, message: impl Into<String>) -> Self {
        Self {
            lane: Some(lane),
            message: message.into(),
        }
    }
}

/// An instruction of a kernel, as messages name it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Of the PTX text.
    pub line: u32,
    pub instruction: String,
    /// `file:line` of the source, where the PTX was compiled with -lineinfo.
    pub source: Option<String>,
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "PTX line {}: {}", self.line, self.instruction)?;
        match &self.source {
            Some(source) => write!(out, " ({source})"),
            None => Ok(()),
        }
    }
}

/// A module that the machine cannot load, or a launch that went wrong.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    #[error("{0}")]
    Parse(#[from] syntax::ParseError),
    #[error("{kernel}: {place}: unknown instruction: {reason}")]
    Unknown {
        kernel: String,
        place: Box<Place>,
        reason: String,
    },
    #[error("{kernel}: {reason}")]
    Kernel { kernel: String, reason: String },
    #[error("{kernel}: {reason}")]
    Launch { kernel: String, reason: String },
    #[error("{kernel}: block ({}, {}, {}), {who}: {message}\n  at {place}", block[0], block[1], block[2])]
    Fault {
        kernel: String,
        block: [u32; 3],
        who: String,
        message: String,
        place: Box<Place>,
    },
    #[error("{kernel}: cluster {cluster}: deadlock{report}")]
    Deadlock {
        kernel: String,
        cluster: u64,
        report: String,
    },
}
