//! What the shell gets of a run: text on standard output, and an exit code.

use std::io::Write;

pub const FAILED: u8 = 1;
pub const USAGE: u8 = 2;
/// Plus the signal number, as in shells.
pub const SIGNALLED: u8 = 128;

/// Prints to standard output; a closed pipe is not an error.
pub fn print(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}
