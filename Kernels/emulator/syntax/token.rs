//! Words, numbers, strings and punctuation, each with its line.

use crate::ParseError;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A name, a number, or an opcode with its modifiers.
    Word,
    Quoted,
    Mark(u8),
}

#[derive(Clone, Copy, Debug)]
pub struct Token<'a> {
    pub kind: Kind,
    /// Without quotes.
    pub text: &'a str,
    /// Where it begins in the source, in bytes.
    pub start: usize,
    pub line: u32,
}

impl Token<'_> {
    pub fn is(&self, mark: u8) -> bool {
        self.kind == Kind::Mark(mark)
    }
}

fn in_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'%' | b'.')
}

pub fn tokens(source: &str) -> Result<Vec<Token<'_>>, ParseError> {
    let bytes = source.as_bytes();
    let mut found = Vec::with_capacity(source.len() / 5);
    let (mut at, mut line) = (0, 1);
    while at < bytes.len() {
        let start = at;
        let byte = bytes[at];
        match byte {
            b'\n' => {
                line += 1;
                at += 1;
            }
            _ if byte.is_ascii_whitespace() => at += 1,
            b'/' if bytes.get(at + 1) == Some(&b'/') => {
                at += bytes[at..]
                    .iter()
                    .position(|b| *b == b'\n')
                    .unwrap_or(bytes.len() - at);
            }
            b'/' if bytes.get(at + 1) == Some(&b'*') => {
                let Some(length) = source[at + 2..].find("*/") else {
                    return Err(error(source, line, "a comment without an end"));
                };
                let end = at + 2 + length + 2;
                line += bytes[at..end].iter().filter(|b| **b == b'\n').count() as u32;
                at = end;
            }
            b'"' => {
                let Some(length) = source[at + 1..].find('"') else {
                    return Err(error(source, line, "a string without an end"));
                };
                at += length + 2;
                found.push(Token {
                    kind: Kind::Quoted,
                    text: &source[start + 1..at - 1],
                    start,
                    line,
                });
                line += bytes[start..at].iter().filter(|b| **b == b'\n').count() as u32;
            }
            _ if in_word(byte) => {
                loop {
                    if at < bytes.len() && in_word(bytes[at]) {
                        at += 1;
                    } else if bytes[at..].starts_with(b"::")
                        && bytes.get(at + 2).is_some_and(|b| in_word(*b))
                    {
                        at += 2;
                    } else {
                        break;
                    }
                }
                found.push(Token {
                    kind: Kind::Word,
                    text: &source[start..at],
                    start,
                    line,
                });
            }
            b'{' | b'}' | b'(' | b')' | b'[' | b']' | b'<' | b'>' | b',' | b';' | b':' | b'='
            | b'|' | b'!' | b'@' | b'+' | b'-' => {
                at += 1;
                found.push(Token {
                    kind: Kind::Mark(byte),
                    text: &source[start..at],
                    start,
                    line,
                });
            }
            _ => return Err(error(source, line, "a character that PTX does not use")),
        }
    }
    Ok(found)
}

pub fn error(source: &str, line: u32, message: impl Into<String>) -> ParseError {
    let text = source.lines().nth(line as usize - 1).unwrap_or_default();
    ParseError {
        line,
        message: beginning(&message.into()),
        text: beginning(text.trim()),
    }
}

/// As much of a text as anybody reads.
fn beginning(text: &str) -> String {
    const LONGEST: usize = 120;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}
