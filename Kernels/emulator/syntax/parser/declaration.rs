//! Variables and the heads of functions.

use super::{Parser, Result};
use crate::{Linkage, Parameter, Space, Type, Variable};

/// Of all variables of a module.
const MOST_BYTES: u64 = 1 << 30;

impl<'a> Parser<'a> {
    pub(super) fn module_variable(&mut self, space: Space, linkage: &mut Linkage) -> Result<()> {
        let (name, mut variable) = self.variable(space)?;
        variable.linkage = std::mem::replace(linkage, Linkage::Private);
        let number = self.module.variables.len() as u32;
        if self
            .globals
            .insert(name, number)
            .is_some_and(|old| self.module.variables[old as usize].linkage != Linkage::Extern)
        {
            return self.error_at(variable.line, format!("{name:?} is declared twice"));
        }
        self.module.variables.push(variable);
        let bytes: u64 = self.module.variables.iter().map(|each| each.bytes).sum();
        if bytes > MOST_BYTES {
            return self.error(format!(
                "variables of {bytes} bytes in all; {MOST_BYTES} are supported"
            ));
        }
        Ok(())
    }

    /// After the word of its space, to its semicolon.
    pub(super) fn variable(&mut self, space: Space) -> Result<(&'a str, Variable)> {
        let line = self.line();
        let (mut align, mut lanes, mut ty) = (None, 1, None);
        let name = loop {
            let word = self.word()?;
            match word {
                ".align" => align = Some(self.number()?),
                ".v2" => lanes = 2,
                ".v4" => lanes = 4,
                ".attribute" => while !self.next()?.is(b')') {},
                _ => match word.strip_prefix('.') {
                    None => break word,
                    Some(inner) => match Type::named(inner) {
                        Some(named) => ty = Some(named),
                        None => return self.error_at(line, format!("{word:?} is not a type")),
                    },
                },
            }
        };
        let Some(ty) = ty else {
            return self.error_at(line, format!("{name:?} has no type"));
        };
        let (mut count, mut is_unsized) = (lanes, false);
        while self.takes(b'[') {
            if self.takes(b']') {
                is_unsized = true;
                continue;
            }
            let length = self.number()?;
            let Some(product) = u64::checked_mul(count, length) else {
                return self.error_at(line, format!("{name:?} is too large"));
            };
            count = product;
            self.expect(b']')?;
        }
        let element = u64::from(ty.bytes());
        let Some(bytes) = count.checked_mul(element).filter(|bytes| *bytes < 1 << 40) else {
            return self.error_at(line, format!("{name:?} is too large"));
        };
        let initial = if self.takes(b'=') {
            self.initializer(ty, bytes)?
        } else {
            Vec::new()
        };
        self.expect(b';')?;
        let align = align.unwrap_or(element * lanes).max(1);
        self.check_alignment(line, align)?;
        let variable = Variable {
            name: name.to_owned(),
            space,
            linkage: Linkage::Private,
            align,
            bytes: if is_unsized { 0 } else { bytes },
            is_unsized,
            initial,
            line,
        };
        Ok((name, variable))
    }

    fn check_alignment(&self, line: u32, align: u64) -> Result<()> {
        const MOST: u64 = 1 << 20;
        if align.is_power_of_two() && align <= MOST {
            return Ok(());
        }
        self.error_at(
            line,
            format!("an alignment of {align} is not a power of two up to {MOST}"),
        )
    }

    fn initializer(&mut self, ty: Type, bytes: u64) -> Result<Vec<u8>> {
        let line = self.line();
        let mut data = Vec::new();
        let mut depth = 0;
        loop {
            if self.takes(b'{') {
                depth += 1;
            } else if self.takes(b'}') {
                depth -= 1;
            } else if !self.takes(b',') {
                let negative = self.takes(b'-');
                let word = self.word()?;
                let Some(bits) = super::literal::literal_bits(word, ty) else {
                    return self.error_at(
                        line,
                        format!("an initial value of {word:?} is not supported"),
                    );
                };
                let bits = if negative { bits.wrapping_neg() } else { bits };
                data.extend_from_slice(&bits.to_le_bytes()[..ty.bytes().min(8) as usize]);
            }
            if depth == 0 {
                break;
            }
        }
        if data.len() as u64 > bytes {
            return self.error_at(line, format!("{} initial bytes for {bytes}", data.len()));
        }
        Ok(data)
    }

    /// `( .param .. name, .. )`
    pub(super) fn parameters(&mut self) -> Result<Vec<Parameter>> {
        self.expect(b'(')?;
        let mut found = Vec::new();
        while !self.takes(b')') {
            if self.takes(b',') {
                continue;
            }
            let line = self.line();
            if !self.takes_word(".param") && !self.takes_word(".reg") {
                return self.error("expected .param");
            }
            let (mut align, mut ty) = (None, None);
            let name = loop {
                let word = self.word()?;
                match word {
                    ".align" => align = Some(self.number()?),
                    // What it points to: a space and an alignment of its own.
                    ".ptr" => loop {
                        if self.takes_word(".align") {
                            self.number()?;
                        } else if ![".global", ".shared", ".const", ".local"]
                            .iter()
                            .any(|space| self.takes_word(space))
                        {
                            break;
                        }
                    },
                    _ => match word.strip_prefix('.') {
                        None => break word,
                        Some(inner) => match Type::named(inner) {
                            Some(named) => ty = Some(named),
                            None => {
                                return self.error_at(line, format!("{word:?} is not a type"));
                            }
                        },
                    },
                }
            };
            let Some(ty) = ty else {
                return self.error_at(line, format!("{name:?} has no type"));
            };
            let mut count = 1u64;
            if self.takes(b'[') {
                if !self.peek_is(b']') {
                    count = self.number()?;
                }
                self.expect(b']')?;
            }
            let element = u64::from(ty.bytes());
            let Some(bytes) = count.checked_mul(element).filter(|bytes| *bytes <= 1 << 20) else {
                return self.error_at(line, format!("{name:?} is too large"));
            };
            let align = align.unwrap_or(element);
            self.check_alignment(line, align)?;
            found.push(Parameter {
                name: name.to_owned(),
                align,
                bytes,
            });
        }
        Ok(found)
    }
}
