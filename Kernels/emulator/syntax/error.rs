//! What is wrong with a text, and where.

/// A text that is not PTX, or not PTX that this parser knows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}: `{text}`")]
pub struct ParseError {
    /// Counted from 1.
    pub line: u32,
    pub message: String,
    /// The line itself, without the space around it, or how it begins.
    pub text: String,
}
