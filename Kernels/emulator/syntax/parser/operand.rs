//! Operands of instructions.

use super::body::Body;
use super::literal::{float_bits, integer};
use super::scope::Name;
use super::{Parser, Result};
use crate::token::Kind;
use crate::{Operand, Special, Symbol};

impl<'a> Parser<'a> {
    pub(super) fn operand(&mut self, body: &mut Body<'a>) -> Result<Operand> {
        let first = self.simple(body)?;
        if self.takes(b'|') {
            let second = self.simple(body)?;
            return Ok(Operand::Pair(Box::new((first, second))));
        }
        Ok(first)
    }

    fn simple(&mut self, body: &mut Body<'a>) -> Result<Operand> {
        const DEEPEST: u32 = 16;
        self.nesting += 1;
        if self.nesting > DEEPEST {
            return self.error(format!("operands nest deeper than {DEEPEST}"));
        }
        let found = self.nested(body);
        self.nesting -= 1;
        found
    }

    fn nested(&mut self, body: &mut Body<'a>) -> Result<Operand> {
        if self.takes(b'{') {
            return self.list(body, b'}');
        }
        if self.takes(b'(') {
            return self.list(body, b')');
        }
        if self.takes(b'[') {
            return self.address(body);
        }
        if self.takes(b'!') {
            return match self.simple(body)? {
                Operand::Register(register) => Ok(Operand::NotRegister(register)),
                _ => self.error("! stands before a predicate"),
            };
        }
        if self.takes(b'-') {
            return match self.simple(body)? {
                Operand::Integer(value) => Ok(Operand::Integer(value.wrapping_neg())),
                Operand::Single(bits) => Ok(Operand::Single(bits ^ 1 << 31)),
                Operand::Double(bits) => Ok(Operand::Double(bits ^ 1 << 63)),
                _ => self.error("- stands before a number"),
            };
        }
        if self.takes(b'+') {
            return self.simple(body);
        }
        let word = self.word()?;
        self.named(word, body)
    }

    fn list(&mut self, body: &mut Body<'a>, end: u8) -> Result<Operand> {
        let mut found = Vec::new();
        while !self.takes(end) {
            if !self.takes(b',') {
                found.push(self.simple(body)?);
            }
        }
        Ok(Operand::Vector(found))
    }

    fn address(&mut self, body: &mut Body<'a>) -> Result<Operand> {
        let base = self.simple(body)?;
        let mut offset = 0i64;
        while self.peek_is(b'+') || self.peek_is(b'-') {
            let mut negative = self.next()?.is(b'-');
            negative ^= self.takes(b'-');
            let value = self.number()? as i64;
            offset = offset.wrapping_add(if negative {
                value.wrapping_neg()
            } else {
                value
            });
        }
        let mut more = Vec::new();
        while self.takes(b',') {
            more.push(self.simple(body)?);
        }
        self.expect(b']')?;
        Ok(Operand::Address {
            base: Box::new(base),
            offset,
            more,
        })
    }

    fn named(&mut self, word: &'a str, body: &mut Body<'a>) -> Result<Operand> {
        if word == "_" {
            return Ok(Operand::Sink);
        }
        let first = word.as_bytes()[0];
        if first.is_ascii_digit() {
            if let Some(bits) = float_bits(word, 'f', 8) {
                return Ok(Operand::Single(bits as u32));
            }
            if let Some(bits) = float_bits(word, 'd', 16) {
                return Ok(Operand::Double(bits));
            }
            if let Some(value) = integer(word) {
                return Ok(Operand::Integer(value));
            }
            return match word.parse::<f64>() {
                Ok(value) => Ok(Operand::Double(value.to_bits())),
                Err(_) => self.error_before(format!("{word:?} is not a number")),
            };
        }
        match body.scopes.find(word) {
            Some(Name::Register(register)) => return Ok(Operand::Register(register)),
            Some(Name::Symbol(symbol)) => return Ok(Operand::Symbol(symbol)),
            Some(Name::Table(table)) => return Ok(Operand::Table(table)),
            None => {}
        }
        if let Some(global) = self.globals.get(word) {
            return Ok(Operand::Symbol(Symbol::Module(*global)));
        }
        if self.functions.contains(word) {
            return Ok(Operand::Function(word.to_owned()));
        }
        if word == "WARP_SZ" {
            return Ok(Operand::Integer(32));
        }
        if let Some(special) = word.strip_prefix('%') {
            return match Special::named(special) {
                Some(special) => Ok(Operand::Special(special)),
                None => self.error_before(format!(
                    "{word:?} is neither declared nor a special register"
                )),
            };
        }
        // A label further down, or an error when the function ends.
        body.forward
            .push((word, body.scopes.current, self.tokens[self.at - 1].line));
        Ok(Operand::Label(usize::MAX - (body.forward.len() - 1)))
    }

    fn error_before<T>(&self, message: String) -> Result<T> {
        self.error_at(self.tokens[self.at - 1].line, message)
    }

    pub(super) fn is_label_next(&self) -> bool {
        let (Some(word), Some(colon)) = (self.tokens.get(self.at), self.tokens.get(self.at + 1))
        else {
            return false;
        };
        word.kind == Kind::Word && colon.is(b':')
    }
}
