//! From tokens to a module.

mod body;
mod declaration;
mod literal;
mod operand;
mod scope;

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use crate::token::{self, Kind, Token};
use crate::{Linkage, Module, ParseError, Space};

/// Parses a translation unit.
///
/// # Errors
///
/// Where the text is not PTX; the error names the line and quotes it.
pub fn parse(source: &str) -> Result<Module> {
    let mut parser = Parser {
        source,
        tokens: token::tokens(source)?,
        at: 0,
        module: Module::default(),
        globals: HashMap::new(),
        functions: HashSet::new(),
        opcodes: HashMap::new(),
        nesting: 0,
    };
    parser.unit()?;
    Ok(parser.module)
}

type Result<T> = std::result::Result<T, ParseError>;

struct Parser<'a> {
    source: &'a str,
    tokens: Vec<Token<'a>>,
    at: usize,
    module: Module,
    globals: HashMap<&'a str, u32>,
    functions: HashSet<&'a str>,
    opcodes: HashMap<&'a str, Arc<str>>,
    /// Operands that are open around the one that is read.
    nesting: u32,
}

impl<'a> Parser<'a> {
    fn line(&self) -> u32 {
        let at = self.at.min(self.tokens.len().saturating_sub(1));
        self.tokens.get(at).map_or(1, |token| token.line)
    }

    // Where a token stands in the source.
    fn span(&self, at: usize) -> Range<usize> {
        let token = self.tokens[at];
        token.start..token.start + token.text.len()
    }

    fn error<T>(&self, message: impl Into<String>) -> Result<T> {
        self.error_at(self.line(), message)
    }

    fn error_at<T>(&self, line: u32, message: impl Into<String>) -> Result<T> {
        Err(token::error(self.source, line, message))
    }

    fn peek(&self) -> Option<Token<'a>> {
        self.tokens.get(self.at).copied()
    }

    fn peek_is(&self, mark: u8) -> bool {
        self.peek().is_some_and(|token| token.is(mark))
    }

    fn next(&mut self) -> Result<Token<'a>> {
        match self.peek() {
            Some(token) => {
                self.at += 1;
                Ok(token)
            }
            None => self.error("the text ends too early"),
        }
    }

    fn takes(&mut self, mark: u8) -> bool {
        let found = self.peek_is(mark);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, mark: u8) -> Result<()> {
        if self.takes(mark) {
            return Ok(());
        }
        match self.peek() {
            Some(token) => self.error(format!(
                "expected {:?}, found {:?}",
                char::from(mark),
                token.text
            )),
            None => self.error(format!("expected {:?}, found the end", char::from(mark))),
        }
    }

    fn word(&mut self) -> Result<&'a str> {
        match self.peek() {
            Some(token) if token.kind == Kind::Word => {
                self.at += 1;
                Ok(token.text)
            }
            Some(token) => self.error(format!("expected a word, found {:?}", token.text)),
            None => self.error("expected a word, found the end"),
        }
    }

    fn takes_word(&mut self, word: &str) -> bool {
        let found = self
            .peek()
            .is_some_and(|token| token.kind == Kind::Word && token.text == word);
        self.at += usize::from(found);
        found
    }

    fn number(&mut self) -> Result<u64> {
        let line = self.line();
        let word = self.word()?;
        match literal::integer(word) {
            Some(value) => Ok(value),
            None => self.error_at(line, format!("expected a number, found {word:?}")),
        }
    }

    fn small<T: TryFrom<u64>>(&mut self) -> Result<T> {
        let line = self.line();
        let value = self.number()?;
        match T::try_from(value) {
            Ok(value) => Ok(value),
            Err(_) => self.error_at(line, format!("the number {value} is too large")),
        }
    }

    fn unit(&mut self) -> Result<()> {
        let mut linkage = Linkage::Private;
        while self.peek().is_some() {
            let line = self.line();
            if self.takes(b';') {
                continue;
            }
            match self.word()? {
                ".version" => {
                    let text = self.word()?;
                    let version = text.split_once('.').and_then(|(major, minor)| {
                        Some((major.parse().ok()?, minor.parse().ok()?))
                    });
                    match version {
                        Some(version) => self.module.version = version,
                        None => return self.error_at(line, "expected a version such as 9.0"),
                    }
                }
                ".target" => {
                    self.module.target = self.target()?.to_owned();
                    self.module.target_span = self.span(self.at - 1);
                    while self.takes(b',') {
                        self.word()?;
                    }
                    self.module.head_end = self.span(self.at - 1).end;
                }
                ".address_size" => {
                    if self.number()? != 64 {
                        return self.error_at(line, "addresses of 64 bits alone are supported");
                    }
                    self.module.head_end = self.span(self.at - 1).end;
                }
                ".visible" => linkage = Linkage::Visible,
                ".extern" => linkage = Linkage::Extern,
                ".weak" => linkage = Linkage::Weak,
                ".common" => linkage = Linkage::Common,
                ".global" => self.module_variable(Space::Global, &mut linkage)?,
                ".const" => self.module_variable(Space::Constant, &mut linkage)?,
                ".shared" => self.module_variable(Space::Shared, &mut linkage)?,
                ".entry" => self.function(true, &mut linkage)?,
                ".func" => self.function(false, &mut linkage)?,
                ".file" => self.file()?,
                ".section" => self.section()?,
                ".pragma" => while !self.next()?.is(b';') {},
                word => {
                    return self.error_at(line, format!("{word:?} does not begin a declaration"));
                }
            }
        }
        if self.module.target.is_empty() {
            return self.error_at(1, "no .target names the architecture");
        }
        if self.module.version == (0, 0) {
            return self.error_at(1, "no .version says which PTX it is");
        }
        Ok(())
    }

    /// An architecture, such as sm_90a.
    fn target(&mut self) -> Result<&'a str> {
        const NUMBERS: [&str; 21] = [
            "50", "52", "53", "60", "61", "62", "70", "72", "75", "80", "86", "87", "88", "89",
            "90", "100", "101", "103", "110", "120", "121",
        ];
        let word = self.word()?;
        let number = word.strip_prefix("sm_").unwrap_or_default();
        let number = number.strip_suffix(['a', 'f']).unwrap_or(number);
        if NUMBERS.contains(&number) {
            return Ok(word);
        }
        self.error_at(
            self.tokens[self.at - 1].line,
            format!("{word:?} is not an architecture"),
        )
    }

    fn file(&mut self) -> Result<()> {
        let number = self.small()?;
        let path = self.next()?;
        if path.kind != Kind::Quoted {
            return self.error("expected a quoted path");
        }
        self.module.files.insert(number, path.text.to_owned());
        while self.takes(b',') {
            self.next()?;
        }
        Ok(())
    }

    // Debug information.
    fn section(&mut self) -> Result<()> {
        self.word()?;
        self.expect(b'{')?;
        while !self.next()?.is(b'}') {}
        Ok(())
    }
}
