//! PTX as it is put together: operands by their names, fresh registers, calls.

use std::fmt::Write;

use syntax::{Function, Module, Operand, Symbol};

type Result<T> = std::result::Result<T, String>;

/// The names of what operands of a function refer to.
#[derive(Clone, Copy)]
pub struct Names<'a> {
    pub module: &'a Module,
    pub function: &'a Function,
}

impl Names<'_> {
    pub fn of(&self, operand: &Operand) -> Result<String> {
        Ok(match operand {
            Operand::Register(number) => self.function.registers[*number as usize].name.clone(),
            Operand::NotRegister(number) => {
                format!("!{}", self.function.registers[*number as usize].name)
            }
            Operand::Integer(value) => format!("{}", *value as i64),
            Operand::Single(bits) => format!("0f{bits:08x}"),
            Operand::Double(bits) => format!("0d{bits:016x}"),
            Operand::Symbol(Symbol::Module(number)) => {
                self.module.variables[*number as usize].name.clone()
            }
            Operand::Symbol(Symbol::Local(number)) => {
                self.function.variables[*number as usize].name.clone()
            }
            Operand::Sink => "_".to_owned(),
            Operand::Address { base, offset, more } if more.is_empty() => match offset {
                0 => format!("[{}]", self.of(base)?),
                _ => format!("[{}+{offset}]", self.of(base)?),
            },
            _ => return Err("an operand that is not rewritten".to_owned()),
        })
    }

    fn bits(&self, operand: &Operand) -> Option<u32> {
        match operand {
            Operand::Register(number) | Operand::NotRegister(number) => {
                Some(self.function.registers[*number as usize].ty.bits())
            }
            _ => None,
        }
    }
}

/// Statements inside of braces, so that their registers are their own.
pub struct Code<'a> {
    names: Names<'a>,
    text: String,
    fresh: usize,
}

impl<'a> Code<'a> {
    pub fn new(names: Names<'a>) -> Self {
        Self {
            names,
            text: String::new(),
            fresh: 0,
        }
    }

    pub fn line(&mut self, statement: impl AsRef<str>) {
        let _ = writeln!(self.text, "{}", statement.as_ref());
    }

    pub fn name(&self, operand: &Operand) -> Result<String> {
        self.names.of(operand)
    }

    /// A register that nobody uses, of a type.
    pub fn register(&mut self, ty: &str) -> String {
        self.fresh += 1;
        let name = format!("emulated_{}", self.fresh);
        self.line(format!(".reg .{ty} {name};"));
        name
    }

    /// An operand or an address in 32 bits, whatever it has; 0 or 1 of a predicate.
    pub fn word(&mut self, operand: &Operand) -> Result<String> {
        let (inner, offset) = match operand {
            Operand::Address { base, offset, .. } => (&**base, *offset),
            other => (other, 0),
        };
        let name = self.name(inner)?;
        let word = self.register("b32");
        match (self.names.bits(inner), inner) {
            (Some(1), Operand::NotRegister(_)) => {
                self.line(format!("selp.u32 {word}, 0, 1, {};", &name[1..]));
            }
            (Some(1), _) => self.line(format!("selp.u32 {word}, 1, 0, {name};")),
            (Some(16), _) => self.line(format!("cvt.u32.u16 {word}, {name};")),
            (Some(64), _) => self.line(format!("cvt.u32.u64 {word}, {name};")),
            _ => self.line(format!("mov.b32 {word}, {name};")),
        }
        if offset != 0 {
            self.line(format!("add.s32 {word}, {word}, {offset};"));
        }
        Ok(word)
    }

    /// An operand or an address in 64 bits.
    pub fn wide(&mut self, operand: &Operand) -> Result<String> {
        let (inner, offset) = match operand {
            Operand::Address { base, offset, .. } => (&**base, *offset),
            other => (other, 0),
        };
        let name = self.name(inner)?;
        let wide = self.register("b64");
        match self.names.bits(inner) {
            Some(32) => self.line(format!("cvt.u64.u32 {wide}, {name};")),
            Some(1 | 16) => return Err("an operand of another size".to_owned()),
            _ => self.line(format!("mov.b64 {wide}, {name};")),
        }
        if offset != 0 {
            self.line(format!("add.s64 {wide}, {wide}, {offset};"));
        }
        Ok(wide)
    }

    /// Calls a routine with arguments of so many bits.
    pub fn call(&mut self, routine: &str, arguments: &[(u32, &str)]) {
        let names: Vec<String> = (0..arguments.len())
            .map(|at| format!("emulated_p{at}"))
            .collect();
        self.line("{");
        for (name, (bits, value)) in names.iter().zip(arguments) {
            self.line(format!(
                ".param .b{bits} {name}; st.param.b{bits} [{name}], {value};"
            ));
        }
        if names.is_empty() {
            self.line(format!("call emulated_{routine};"));
        } else {
            self.line(format!("call emulated_{routine}, ({});", names.join(", ")));
        }
        self.line("}");
    }

    pub fn finish(self) -> String {
        format!("{{\n{}}}", self.text)
    }
}
