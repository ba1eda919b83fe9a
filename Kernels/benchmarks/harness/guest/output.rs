//! What a library prints, kept as text: a file without a name that cannot grow beyond a limit.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::process::Stdio;

/// The rest is lost.
pub const BYTES: u64 = 64 << 10;
/// As much of its beginning and of its end goes into a row.
const FIRST: usize = 200;
const LAST: usize = 100;

pub struct Output(File);

impl Output {
    pub fn new() -> io::Result<Self> {
        Ok(Self(File::from(device::file_without_name()?)))
    }

    pub fn writer(&self) -> io::Result<Stdio> {
        Ok(self.0.try_clone()?.into())
    }

    /// Its first and its last words, on one line; none if it printed nothing.
    pub fn shown(&self) -> Option<String> {
        let length = self.0.metadata().ok()?.len().min(BYTES);
        let mut bytes = vec![0; length as usize];
        self.0.read_exact_at(&mut bytes, 0).ok()?;
        let text = String::from_utf8_lossy(&bytes);
        let printable = |c: char| if c.is_control() { ' ' } else { c };
        let text: String = text.chars().map(printable).collect();
        let words: Vec<&str> = text.split_whitespace().collect();
        let text: Vec<char> = words.join(" ").chars().collect();
        let piece = |range: &[char]| range.iter().collect::<String>();
        match text.len() {
            0 => None,
            length if length <= FIRST + LAST => Some(piece(&text)),
            length => {
                let (first, last) = (piece(&text[..FIRST]), piece(&text[length - LAST..]));
                Some(format!("{first} ... {last}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn what_was_printed_is_one_short_line() {
        let mut output = Output::new().unwrap();
        assert_eq!(output.shown(), None);
        output.0.write_all(b"one\n\x1b[2J\xff two\n").unwrap();
        assert_eq!(output.shown().unwrap(), "one [2J\u{fffd} two");
        output.0.write_all(&[b'x'; 5000]).unwrap();
        let shown = output.shown().unwrap();
        assert!(
            shown.starts_with("one [2J") && shown.contains("x ... x"),
            "{shown}"
        );
        assert_eq!(shown.chars().count(), FIRST + LAST + 5);
    }
}
