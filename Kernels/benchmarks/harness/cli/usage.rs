//! What is wrong with a command line, in one sentence.

use std::fmt::Display;

/// A choice that this benchmark does not support. The message names the value and a remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UsageError(pub String);

impl UsageError {
    pub fn new(message: impl Display) -> Self {
        Self(message.to_string())
    }

    /// For a custom shape; `what` follows its sizes: "is not a matrix product: expected MxNxK".
    pub fn of_shape(sizes: &[usize], what: &str) -> Self {
        let sizes: Vec<String> = sizes.iter().map(usize::to_string).collect();
        Self(format!("'{}' {what}", sizes.join("x")))
    }
}

/// A name that somebody typed, as part of a sentence: one line, and not all of a long one.
pub fn shown(name: &str) -> String {
    const LONGEST: usize = 64;
    let plain = |c| if record::is_plain(c) { c } else { '\u{fffd}' };
    let start: String = name.chars().take(LONGEST).map(plain).collect();
    match name.chars().count() {
        ..=LONGEST => start,
        _ => start + "...",
    }
}
