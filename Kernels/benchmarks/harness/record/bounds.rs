//! What a file may contain before anybody believes it: how much text, how deep, which characters.
//!
//! A result file comes from anywhere. Whatever passes here and in `check` costs every command memory
//! and time in proportion to its size, and prints as nothing but text.

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::fmt;
use std::io::{self, Read};
use std::path::Path;

/// Bytes of a file, unpacked: several times the largest published collection.
pub const TEXT_MAX: u64 = 128 << 20;
const STRING_MAX: usize = 1 << 20;
const MEMBERS_MAX: usize = 512;
const ELEMENTS_MAX: usize = 1 << 20;
const DEPTH_MAX: usize = 12;
const NUMBER_MAX: f64 = 1e100;

/// A file's bytes, up to `TEXT_MAX`.
pub fn read_bounded(path: &Path) -> io::Result<Vec<u8>> {
    drain_bounded(std::fs::File::open(path)?)
}

/// A stream's bytes, up to `TEXT_MAX`.
pub fn drain_bounded(stream: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    stream.take(TEXT_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > TEXT_MAX {
        return Err(io::Error::other(format!(
            "has more than {} MiB of text",
            TEXT_MAX >> 20
        )));
    }
    Ok(bytes)
}

/// Refuses JSON text that no program of ours writes, without building anything from it.
pub fn check_text(text: &str) -> Result<(), serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    Any { depth: 0 }.deserialize(&mut deserializer)?;
    deserializer.end()
}

/// Characters that steer a terminal, reorder a line, or are not allowed in XML.
pub fn is_plain(character: char) -> bool {
    !(character.is_control()
        || matches!(character, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        || matches!(character, '\u{200e}' | '\u{200f}' | '\u{61c}' | '\u{feff}')
        || matches!(character, '\u{fff9}'..='\u{fffb}')
        || u32::from(character) & 0xfffe == 0xfffe)
}

/// Text for a terminal: everything that is not plain is replaced; lines stay lines.
pub fn printable(text: &str) -> String {
    let shown = |c: char| {
        if is_plain(c) || "\n\t".contains(c) {
            c
        } else {
            '\u{fffd}'
        }
    };
    text.chars().map(shown).collect()
}

/// Serialised JSON whose strings have only plain characters: a contender's message may have any.
pub(crate) fn plain_json(json: String) -> String {
    let escapes = json.contains('\\');
    if !escapes && json.chars().all(|c| is_plain(c) || c == '\n') {
        return json;
    }
    let mut plain = String::with_capacity(json.len());
    let mut characters = json.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some(kept @ ('"' | '\\' | '/' | 'n' | 't')) => plain.extend(['\\', kept]),
                // serde_json writes \u only for control characters.
                Some('u') => {
                    characters.by_ref().take(4).for_each(drop);
                    plain.push('\u{fffd}');
                }
                _ => plain.push('\u{fffd}'),
            },
            // Between the members; inside a string it is an escape.
            '\n' => plain.push('\n'),
            other if is_plain(other) => plain.push(other),
            _ => plain.push('\u{fffd}'),
        }
    }
    plain
}

/// Any JSON value, read and forgotten.
#[derive(Clone, Copy)]
struct Any {
    depth: usize,
}

impl Any {
    fn below<E: Error>(self) -> Result<Any, E> {
        match self.depth < DEPTH_MAX {
            true => Ok(Any {
                depth: self.depth + 1,
            }),
            false => Err(E::custom(format!("nested more than {DEPTH_MAX} deep"))),
        }
    }
}

impl<'de> DeserializeSeed<'de> for Any {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Any {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<(), E> {
        match value.abs() <= NUMBER_MAX {
            true => Ok(()),
            false => Err(E::custom(format!("the number {value:e} measures nothing"))),
        }
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        if text.len() > STRING_MAX {
            return Err(E::custom(format!("a text of {} bytes", text.len())));
        }
        // A message may have lines; a name may not, see `check`.
        match text.chars().find(|c| !is_plain(*c) && !"\n\t".contains(*c)) {
            None => Ok(()),
            Some(odd) => Err(E::custom(format!(
                "a text with the control character U+{:04X}",
                u32::from(odd)
            ))),
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<(), A::Error> {
        let below = self.below()?;
        let mut count = 0;
        while elements.next_element_seed(below)?.is_some() {
            count += 1;
            if count > ELEMENTS_MAX {
                return Err(A::Error::custom(format!(
                    "an array of more than {ELEMENTS_MAX} elements"
                )));
            }
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let below = self.below()?;
        let mut count = 0;
        while members.next_key_seed(below)?.is_some() {
            members.next_value_seed(below)?;
            count += 1;
            if count > MEMBERS_MAX {
                return Err(A::Error::custom(format!(
                    "an object of more than {MEMBERS_MAX} members"
                )));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_no_program_of_ours_writes_is_refused() {
        let refused = |text: &str| check_text(text).unwrap_err().to_string();
        for odd in [
            "\\u001b[2J",
            "\\r",
            "\\u0000",
            "\u{7f}",
            "\u{9b}",
            "\u{202e}",
            "\u{feff}",
        ] {
            let told = refused(&format!("{{\"meta\": [\"{odd}\"]}}"));
            assert!(told.contains("control character U+"), "{told}");
            let told = refused(&format!("{{\"{odd}\": 1}}"));
            assert!(told.contains("control character U+"), "{told}");
        }
        assert!(refused("[1.7e308]").contains("measures nothing"));
        assert!(refused(&("[".repeat(13) + &"]".repeat(13))).contains("deep"));
        assert!(refused(&format!("\"{}\"", "x".repeat(2_000_000))).contains("2000000 bytes"));
        let members: Vec<String> = (0..513).map(|key| format!("\"{key}\": 0")).collect();
        assert!(refused(&format!("{{{}}}", members.join(","))).contains("512 members"));
        assert!(refused(&format!("[{}0]", "0,".repeat(1 << 20))).contains("elements"));
        assert!(check_text("{\"a\": [1, -2, 3.5, \"µ — 漢\", null, true]}").is_ok());
        assert!(check_text("{} {}").is_err());
    }

    #[test]
    fn what_is_written_is_plain() {
        let odd = serde_json::json!({"a\u{1b}": "x\ny\u{7f}z\u{202e}\"\\\u{0}"});
        let plain = plain_json(serde_json::to_string_pretty(&odd).unwrap());
        check_text(&plain).unwrap();
        let back: serde_json::Value = serde_json::from_str(&plain).unwrap();
        assert_eq!(back["a\u{fffd}"], "x\ny\u{fffd}z\u{fffd}\"\\\u{fffd}");
        assert_eq!(printable("a\u{1b}[2J\nb"), "a\u{fffd}[2J\nb");
    }
}
