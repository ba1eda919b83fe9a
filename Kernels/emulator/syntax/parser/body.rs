//! Functions: heads, blocks, instructions and labels.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::literal::integer;
use super::scope::{Name, Scopes};
use super::{Parser, Result};
use crate::{
    Function, Guard, Instruction, Linkage, Location, Operand, Parameter, Register, Space, Symbol,
    Type,
};

/// A name, the block where it stands, its line.
type Reference<'a> = (&'a str, usize, u32);

/// A function while it is read.
pub(super) struct Body<'a> {
    pub function: Function,
    pub scopes: Scopes<'a>,
    /// Names that were not known where they stood.
    pub forward: Vec<Reference<'a>>,
    pub location: Option<u32>,
    pending_tables: Vec<(usize, Vec<Reference<'a>>)>,
}

impl<'a> Parser<'a> {
    pub(super) fn function(&mut self, is_entry: bool, linkage: &mut Linkage) -> Result<()> {
        *linkage = Linkage::Private;
        let line = self.line();
        while self.takes_word(".noreturn") {}
        let returns_at = self.at;
        let returns = if self.peek_is(b'(') {
            self.parameters()?
        } else {
            Vec::new()
        };
        let name = self.word()?;
        let parameters_at = self.at;
        let parameters = if self.peek_is(b'(') {
            self.parameters()?
        } else {
            Vec::new()
        };
        let directives = self.directives()?;
        self.functions.insert(name);
        let function = Function {
            name: name.to_owned(),
            is_entry,
            has_body: !self.peek_is(b';'),
            body_start: 0,
            line,
            parameters,
            returns,
            registers: Vec::new(),
            variables: Vec::new(),
            instructions: Vec::new(),
            tables: Vec::new(),
            locations: Vec::new(),
            directives,
        };
        if self.takes(b';') {
            self.module.functions.push(function);
            return Ok(());
        }
        if self.module.function(name).is_some() {
            return self.error_at(line, format!("{name:?} is defined twice"));
        }
        let mut body = Body {
            function,
            scopes: Scopes::new(),
            forward: Vec::new(),
            location: None,
            pending_tables: Vec::new(),
        };
        self.declare_parameters(&mut body, returns_at, parameters_at)?;
        self.block(&mut body)?;
        self.resolve(&mut body)?;
        self.module.functions.push(body.function);
        Ok(())
    }

    // The names of parameters, borrowed from the text.
    fn declare_parameters(
        &mut self,
        body: &mut Body<'a>,
        returns: usize,
        parameters: usize,
    ) -> Result<()> {
        let lists = [
            (
                returns,
                body.function.returns.clone(),
                Symbol::Return as fn(u32) -> Symbol,
            ),
            (
                parameters,
                body.function.parameters.clone(),
                Symbol::Parameter,
            ),
        ];
        for (start, list, symbol) in lists {
            let mut from = start;
            for (number, Parameter { name, .. }) in list.iter().enumerate() {
                let Some(found) = self.tokens[from..]
                    .iter()
                    .position(|token| token.text == name)
                else {
                    return self.error(format!("parameter {name:?} is lost"));
                };
                from += found;
                let word = self.tokens[from].text;
                if !body
                    .scopes
                    .declare(word, Name::Symbol(symbol(number as u32)))
                {
                    return self.error_at(
                        body.function.line,
                        format!("parameter {name:?} is declared twice"),
                    );
                }
            }
        }
        Ok(())
    }

    fn directives(&mut self) -> Result<BTreeMap<String, Vec<u32>>> {
        let mut found = BTreeMap::new();
        while !self.peek_is(b'{') && !self.peek_is(b';') {
            let word = self.word()?;
            let Some(name) = word.strip_prefix('.') else {
                return self.error(format!("{word:?} between a function's head and its body"));
            };
            let mut values = Vec::new();
            while !self.peek_is(b'{') && !self.peek_is(b';') {
                if self.peek().is_some_and(|token| token.text.starts_with('.')) {
                    break;
                }
                if self.takes(b',') {
                    continue;
                }
                if name == "pragma"
                    || self
                        .peek()
                        .is_some_and(|token| integer(token.text).is_none())
                {
                    self.next()?;
                } else {
                    values.push(self.small()?);
                }
            }
            found.insert(name.to_owned(), values);
        }
        Ok(found)
    }

    fn block(&mut self, body: &mut Body<'a>) -> Result<()> {
        const DEEPEST: u32 = 256;
        self.expect(b'{')?;
        body.function.body_start = self.span(self.at - 1).end;
        let mut depth = 0;
        loop {
            if self.takes(b'}') {
                if !body.scopes.close() {
                    return Ok(());
                }
                depth -= 1;
            } else if self.takes(b'{') {
                body.scopes.open();
                depth += 1;
                if depth > DEEPEST {
                    return self.error(format!("blocks nest deeper than {DEEPEST}"));
                }
            } else if !self.takes(b';') {
                self.statement(body)?;
            }
        }
    }

    fn statement(&mut self, body: &mut Body<'a>) -> Result<()> {
        if self.is_label_next() {
            let line = self.line();
            let name = self.word()?;
            self.expect(b':')?;
            if self.takes_word(".branchtargets") {
                return self.branch_targets(name, body);
            }
            if self
                .peek()
                .is_some_and(|token| matches!(token.text, ".callprototype" | ".calltargets"))
            {
                return self.error("indirect calls are not supported");
            }
            if !body.scopes.label(name, body.function.instructions.len()) {
                return self.error_at(line, format!("label {name:?} is declared twice"));
            }
            return Ok(());
        }
        let directive = self.peek().filter(|token| token.text.starts_with('.'));
        match directive.map(|token| token.text) {
            None => self.instruction(body),
            Some(word) => {
                self.at += 1;
                match word {
                    ".reg" => self.registers(body),
                    ".local" => self.body_variable(Space::Local, body),
                    ".param" => self.body_variable(Space::Parameter, body),
                    ".shared" => {
                        let (name, variable) = self.variable(Space::Shared)?;
                        let number = self.module.variables.len() as u32;
                        self.module.variables.push(variable);
                        self.declare(name, Name::Symbol(Symbol::Module(number)), body)
                    }
                    ".loc" => self.location(body),
                    ".pragma" => {
                        while !self.next()?.is(b';') {}
                        Ok(())
                    }
                    _ => self.error_at(
                        self.tokens[self.at - 1].line,
                        format!("{word:?} does not begin a statement"),
                    ),
                }
            }
        }
    }

    fn declare(&mut self, name: &'a str, what: Name, body: &mut Body<'a>) -> Result<()> {
        if body.scopes.declare(name, what) {
            return Ok(());
        }
        self.error_at(
            self.tokens[self.at - 1].line,
            format!("{name:?} is declared twice"),
        )
    }

    fn body_variable(&mut self, space: Space, body: &mut Body<'a>) -> Result<()> {
        let (name, variable) = self.variable(space)?;
        let number = body.function.variables.len() as u32;
        body.function.variables.push(variable);
        self.declare(name, Name::Symbol(Symbol::Local(number)), body)
    }

    fn registers(&mut self, body: &mut Body<'a>) -> Result<()> {
        const MOST: u64 = 1 << 20;
        let word = self.word()?;
        let Some(ty) = word.strip_prefix('.').and_then(Type::named) else {
            return self.error(format!("{word:?} is not a type of registers"));
        };
        loop {
            let name = self.word()?;
            let first = body.function.registers.len() as u32;
            if self.takes(b'<') {
                let count: u32 = self.small()?;
                self.expect(b'>')?;
                let all = u64::from(first) + u64::from(count);
                if all > MOST {
                    return self.error(format!("{all} registers; {MOST} are supported"));
                }
                for number in 0..count {
                    body.function.registers.push(Register {
                        name: format!("{name}{number}"),
                        ty,
                    });
                }
                body.scopes.declare_range(name, first, count);
            } else {
                body.function.registers.push(Register {
                    name: name.to_owned(),
                    ty,
                });
                self.declare(name, Name::Register(first), body)?;
            }
            if !self.takes(b',') {
                return self.expect(b';');
            }
        }
    }

    // .loc file line column [, function_name label[+n]] [, inlined_at file line column]
    fn location(&mut self, body: &mut Body<'a>) -> Result<()> {
        let mut location = Location {
            file: self.small()?,
            line: self.small()?,
            inlined_at: None,
        };
        self.number()?;
        while self.takes(b',') {
            if self.takes_word("inlined_at") {
                location.inlined_at = Some((self.small()?, self.small()?));
                self.number()?;
            } else if self.takes_word("function_name") {
                self.word()?;
                if self.takes(b'+') {
                    self.number()?;
                }
            } else {
                return self.error("expected function_name or inlined_at");
            }
        }
        if body.function.locations.last() != Some(&location) {
            body.function.locations.push(location);
        }
        body.location = Some(body.function.locations.len() as u32 - 1);
        Ok(())
    }

    fn branch_targets(&mut self, name: &'a str, body: &mut Body<'a>) -> Result<()> {
        let mut targets = Vec::new();
        while !self.takes(b';') {
            if !self.takes(b',') {
                let line = self.line();
                targets.push((self.word()?, body.scopes.current, line));
            }
        }
        let number = body.function.tables.len();
        body.function.tables.push(Vec::new());
        body.pending_tables.push((number, targets));
        self.declare(name, Name::Table(number as u32), body)
    }

    fn instruction(&mut self, body: &mut Body<'a>) -> Result<()> {
        let (line, first) = (self.line(), self.at);
        let mut guard = None;
        if self.takes(b'@') {
            let negated = self.takes(b'!');
            let word = self.word()?;
            match body.scopes.find(word) {
                Some(Name::Register(register))
                    if body.function.registers[register as usize].ty == Type::Pred =>
                {
                    guard = Some(Guard { register, negated });
                }
                _ => return self.error_at(line, format!("{word:?} guards and is not a predicate")),
            }
        }
        let word = self.word()?;
        if !word.as_bytes()[0].is_ascii_lowercase() {
            return self.error_at(line, format!("{word:?} is not an instruction"));
        }
        let opcode = self
            .opcodes
            .entry(word)
            .or_insert_with(|| Arc::from(word))
            .clone();
        let mut operands = Vec::new();
        while !self.takes(b';') {
            operands.push(self.operand(body)?);
            if !self.takes(b',') && !self.peek_is(b';') {
                return match self.peek() {
                    Some(token) => self.error(format!(
                        "expected a comma or semicolon, found {:?}",
                        token.text
                    )),
                    None => self.error("the text ends inside an instruction"),
                };
            }
        }
        body.function.instructions.push(Instruction {
            guard,
            opcode,
            operands,
            span: self.span(first).start..self.span(self.at - 1).end,
            line,
            location: body.location,
        });
        Ok(())
    }

    // Labels stand for instructions once all are known.
    fn resolve(&mut self, body: &mut Body<'a>) -> Result<()> {
        for (table, targets) in std::mem::take(&mut body.pending_tables) {
            for (name, block, line) in targets {
                match body.scopes.find_label(block, name) {
                    Some(at) => body.function.tables[table].push(at),
                    None => return self.error_at(line, format!("{name:?} is not a label")),
                }
            }
        }
        if body.forward.is_empty() {
            return Ok(());
        }
        for instruction in &mut body.function.instructions {
            let branches =
                instruction.opcode.starts_with("bra") || instruction.opcode.starts_with("brx");
            let calls = instruction.opcode.starts_with("call");
            for operand in &mut instruction.operands {
                let Operand::Label(number) = operand else {
                    if let Some(number) = hidden_label(operand) {
                        let (name, _, line) = body.forward[usize::MAX - number];
                        return Err(crate::token::error(
                            self.source,
                            line,
                            format!("{name:?} is not declared"),
                        ));
                    }
                    continue;
                };
                let (name, block, line) = body.forward[usize::MAX - *number];
                match body.scopes.find_label(block, name) {
                    Some(at) if branches => *operand = Operand::Label(at),
                    _ if calls => *operand = Operand::Function(name.to_owned()),
                    _ => {
                        return Err(crate::token::error(
                            self.source,
                            line,
                            format!("{name:?} is not declared"),
                        ))
                    }
                }
            }
        }
        Ok(())
    }
}

// An undeclared name inside brackets.
fn hidden_label(operand: &Operand) -> Option<usize> {
    match operand {
        Operand::Label(number) => Some(*number),
        Operand::Vector(list) => list.iter().find_map(hidden_label),
        Operand::Address { base, more, .. } => {
            hidden_label(base).or_else(|| more.iter().find_map(hidden_label))
        }
        Operand::Pair(pair) => hidden_label(&pair.0).or_else(|| hidden_label(&pair.1)),
        _ => None,
    }
}
