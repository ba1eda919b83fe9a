//! The words of an opcode, each of which must be accounted for.

use crate::Type;

/// An opcode taken apart: whoever decodes it takes each modifier once, and what is left is refused.
///
/// ```
/// let mut opcode = syntax::Opcode::of("ld.global.nc.v4.u32");
/// assert!(opcode.takes("global") && opcode.takes("v4"));
/// assert_eq!(opcode.takes_type(), Some(syntax::Type::U32));
/// assert_eq!(opcode.finish().unwrap_err().0, "nc");
/// ```
#[derive(Clone, Debug)]
pub struct Opcode<'a> {
    pub base: &'a str,
    /// None where one was taken.
    modifiers: Vec<Option<&'a str>>,
}

/// A modifier that nobody took.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("modifier .{0}")]
pub struct UnknownModifier(pub String);

impl<'a> Opcode<'a> {
    pub fn of(text: &'a str) -> Self {
        let mut words = text.split('.');
        Self {
            base: words.next().unwrap_or_default(),
            modifiers: words.map(Some).collect(),
        }
    }

    fn untaken(&self) -> impl Iterator<Item = (usize, &'a str)> + '_ {
        self.modifiers
            .iter()
            .enumerate()
            .filter_map(|(at, word)| Some((at, (*word)?)))
    }

    /// Whether the modifier is there; the first such one is taken.
    pub fn takes(&mut self, name: &str) -> bool {
        let found = self.untaken().find(|(_, word)| *word == name);
        if let Some((at, _)) = found {
            self.modifiers[at] = None;
        }
        found.is_some()
    }

    /// The value of the one name of a table that is there.
    pub fn takes_one<T: Copy>(&mut self, table: &[(&str, T)]) -> Option<T> {
        table
            .iter()
            .find(|(name, _)| self.takes(name))
            .map(|(_, value)| *value)
    }

    /// The next modifier that is a type.
    pub fn takes_type(&mut self) -> Option<Type> {
        let found = self
            .untaken()
            .find_map(|(at, word)| Some((at, Type::named(word)?)));
        found.map(|(at, ty)| {
            self.modifiers[at] = None;
            ty
        })
    }

    /// What follows `prefix` in the next modifier that begins with it.
    pub fn takes_prefixed(&mut self, prefix: &str) -> Option<&'a str> {
        let found = self
            .untaken()
            .find_map(|(at, word)| Some((at, word.strip_prefix(prefix)?)));
        found.map(|(at, rest)| {
            self.modifiers[at] = None;
            rest
        })
    }

    /// Words that say where data should be cached: they change no value.
    pub fn takes_cache_hints(&mut self) -> bool {
        const HINTS: [&str; 11] = [
            "ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc", "L2::128B", "L2::256B", "L2::64B",
        ];
        for hint in HINTS {
            self.takes(hint);
        }
        while self.takes_prefixed("L1::").is_some() {}
        for policy in [
            "evict_first",
            "evict_last",
            "evict_normal",
            "evict_unchanged",
        ] {
            self.takes_prefixed(&format!("L2::{policy}"));
        }
        self.takes("L2::cache_hint")
    }

    /// Refuses an opcode of which something was not taken.
    pub fn finish(&self) -> Result<(), UnknownModifier> {
        match self.untaken().next() {
            None => Ok(()),
            Some((_, word)) => Err(UnknownModifier(word.to_owned())),
        }
    }
}
