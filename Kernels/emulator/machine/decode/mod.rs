//! The instruction table: from an opcode and its operands to an operation, or a refusal.

mod arithmetic;
mod conversion;
mod copy;
mod data;
mod matrix;
mod synchronise;
mod tcgen;

use std::collections::HashMap;

use syntax::{Opcode, Operand, Symbol, Type};

use crate::flatten::{Flat, Step, StepKind};
use crate::op::{
    Address, Bit, Decoded, Gather, Op, Scope, Space, Strength, Target, Value, Wide, Word,
};

pub type Result<T> = std::result::Result<T, String>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    Half(u32),
    Word(u32),
    Wide(u32),
    Bit(u32),
    Unsupported,
}

/// What operands refer to.
pub struct Context<'a> {
    /// As `.target` has it.
    pub target: &'a str,
    pub flat: &'a Flat,
    pub slots: &'a [Slot],
    /// Offsets of the shared variables that the kernel uses.
    pub shared: &'a HashMap<u32, u32>,
    /// Addresses of the module's variables; 0 for shared ones.
    pub globals: &'a [u64],
    /// Offsets of the kernel's parameters.
    pub parameters: &'a [u32],
}

/// One instruction on its way through the table.
pub struct Form<'a> {
    pub context: &'a Context<'a>,
    pub opcode: Opcode<'a>,
    pub operands: &'a [Operand],
}

pub fn decode(context: &Context, step: &Step) -> Result<Decoded> {
    let guard = match step.instruction.guard {
        None => None,
        Some(guard) => match context.slots[guard.register as usize] {
            Slot::Bit(number) => Some((number, guard.negated)),
            _ => return Err("a guard that is not a predicate".to_owned()),
        },
    };
    let op = match step.kind {
        StepKind::Copy { from, to, bytes } => {
            return Ok(Decoded {
                op: Op::CopyLocal { from, to, bytes },
                guard,
                gather: Gather::None,
            })
        }
        StepKind::Jump(target) => {
            return Ok(Decoded {
                op: Op::Branch(target),
                guard,
                gather: Gather::None,
            })
        }
        StepKind::Plain => &step.instruction,
    };
    let mut form = Form {
        context,
        opcode: Opcode::of(&op.opcode),
        operands: &op.operands,
    };
    let (op, gather) = form.operation()?;
    form.opcode
        .finish()
        .map_err(|unknown| unknown.to_string())?;
    Ok(Decoded { op, guard, gather })
}

impl<'a> Form<'a> {
    // Instructions of one architecture, which others do not have.
    fn check_target(&self) -> Result<()> {
        const TENSOR_MEMORY: [&str; 4] = ["sm_100", "sm_101", "sm_103", "sm_110"];
        let target = self.context.target;
        let specific = target.strip_suffix(['a', 'f']);
        let known = match self.opcode.base {
            "wgmma" => target == "sm_90a",
            "tcgen05" => specific.is_some_and(|base| TENSOR_MEMORY.contains(&base)),
            "setmaxnreg" | "tensormap" => specific.is_some(),
            _ => true,
        };
        if known {
            Ok(())
        } else {
            Err(format!("{target} does not have it"))
        }
    }

    fn operation(&mut self) -> Result<(Op, Gather)> {
        self.check_target()?;
        if let Some(op) = self.arithmetic()? {
            return Ok((op, Gather::None));
        }
        if let Some(op) = self.data()? {
            return Ok((op, Gather::None));
        }
        if let Some(op) = self.copy()? {
            return Ok((op, Gather::None));
        }
        if let Some(found) = self.synchronise()? {
            return Ok(found);
        }
        if let Some(found) = self.matrix()? {
            return Ok(found);
        }
        if let Some(found) = self.tcgen()? {
            return Ok(found);
        }
        if let Some(found) = self.tensor_map()? {
            return Ok(found);
        }
        Err("no such opcode".to_owned())
    }

    pub fn operand(&self, at: usize) -> Result<&'a Operand> {
        self.operands
            .get(at)
            .ok_or_else(|| format!("operand {} is missing", at + 1))
    }

    pub fn expect_operands(&self, counts: std::ops::RangeInclusive<usize>) -> Result<()> {
        if counts.contains(&self.operands.len()) {
            return Ok(());
        }
        Err(format!("{} operands", self.operands.len()))
    }

    pub fn ty(&mut self) -> Result<Type> {
        self.opcode.takes_type().ok_or_else(|| "no type".to_owned())
    }

    /// Integers where an instruction is of floats, or floats where it is of integers. Registers of plain bits are
    /// either.
    pub fn check_kinds(&self, ty: Type) -> Result<()> {
        use Type::{F32, F64, S16, S32, S64, U16, U32, U64};
        let (float, whole) = (
            |ty| matches!(ty, F32 | F64),
            |ty| matches!(ty, S16 | S32 | S64 | U16 | U32 | U64),
        );
        let differs = |found| float(ty) && whole(found) || whole(ty) && float(found);
        let kind = |operand: &Operand| match operand {
            Operand::Register(register) => Some(self.context.flat.registers[*register as usize])
                .filter(|found| differs(*found)),
            Operand::Integer(_) if float(ty) => Some(S64),
            Operand::Single(_) if whole(ty) => Some(F32),
            Operand::Double(_) if whole(ty) => Some(F64),
            _ => None,
        };
        match self.operands.iter().find_map(kind) {
            None => Ok(()),
            Some(found) => Err(format!("an operand of {found:?} for {ty:?}")),
        }
    }

    fn slot(&self, register: u32) -> Slot {
        self.context.slots[register as usize]
    }

    pub fn word(&self, at: usize) -> Result<Word> {
        self.word_of(self.operand(at)?)
    }

    pub fn word_of(&self, operand: &Operand) -> Result<Word> {
        match operand {
            Operand::Register(register) => match self.slot(*register) {
                Slot::Word(number) | Slot::Half(number) => Ok(Word::Register(number)),
                _ => Err("a register of another size".to_owned()),
            },
            Operand::Integer(value) => Ok(Word::Immediate(*value as u32)),
            Operand::Single(bits) => Ok(Word::Immediate(*bits)),
            Operand::Double(bits) => Ok(Word::Immediate((f64::from_bits(*bits) as f32).to_bits())),
            Operand::Symbol(symbol) => match self.value_of_symbol(*symbol)? {
                Value::Wide(Wide::Shared(offset)) => Ok(Word::Shared(offset)),
                Value::Wide(Wide::Immediate(value)) if u32::try_from(value).is_ok() => {
                    Ok(Word::Immediate(value as u32))
                }
                _ => Err("an address of 64 bits".to_owned()),
            },
            _ => Err("an operand of another kind".to_owned()),
        }
    }

    pub fn wide(&self, at: usize) -> Result<Wide> {
        self.wide_of(self.operand(at)?)
    }

    pub fn wide_of(&self, operand: &Operand) -> Result<Wide> {
        match operand {
            Operand::Register(register) => match self.slot(*register) {
                Slot::Wide(number) => Ok(Wide::Register(number)),
                _ => Err("a register of another size".to_owned()),
            },
            Operand::Integer(value) | Operand::Double(value) => Ok(Wide::Immediate(*value)),
            Operand::Single(bits) => {
                Ok(Wide::Immediate(f64::from(f32::from_bits(*bits)).to_bits()))
            }
            Operand::Symbol(symbol) => match self.value_of_symbol(*symbol)? {
                Value::Wide(wide) => Ok(wide),
                _ => Err("an operand of another kind".to_owned()),
            },
            _ => Err("an operand of another kind".to_owned()),
        }
    }

    fn value_of_symbol(&self, symbol: Symbol) -> Result<Value> {
        Ok(Value::Wide(match symbol {
            Symbol::Module(number) => match self.context.shared.get(&number) {
                Some(offset) => Wide::Shared(*offset),
                None => Wide::Immediate(self.context.globals[number as usize]),
            },
            Symbol::Local(number) => {
                Wide::Immediate(u64::from(self.context.flat.locals[number as usize]))
            }
            Symbol::Parameter(number) => Wide::Parameter(self.context.parameters[number as usize]),
            Symbol::Return(_) => return Err("a result outside of a function".to_owned()),
        }))
    }

    pub fn bit(&self, at: usize) -> Result<Bit> {
        self.bit_of(self.operand(at)?)
    }

    pub fn bit_of(&self, operand: &Operand) -> Result<Bit> {
        let (register, negated) = match operand {
            Operand::Register(register) => (*register, false),
            Operand::NotRegister(register) => (*register, true),
            Operand::Integer(value) => return Ok(Bit::Constant(*value != 0)),
            _ => return Err("an operand that is not a predicate".to_owned()),
        };
        match self.slot(register) {
            Slot::Bit(number) => Ok(Bit::Register { number, negated }),
            _ => Err("an operand that is not a predicate".to_owned()),
        }
    }

    /// A source of whatever size its register or the type has.
    pub fn value_of(&self, operand: &Operand, ty: Type) -> Result<Value> {
        let slot = match operand {
            Operand::Register(register) | Operand::NotRegister(register) => {
                Some(self.slot(*register))
            }
            _ => None,
        };
        match slot {
            Some(Slot::Bit(_)) => Ok(Value::Bit(self.bit_of(operand)?)),
            Some(Slot::Wide(_)) => Ok(Value::Wide(self.wide_of(operand)?)),
            Some(_) => Ok(Value::Word(self.word_of(operand)?)),
            None if ty == Type::Pred => Ok(Value::Bit(self.bit_of(operand)?)),
            None if ty.bits() == 64 => Ok(Value::Wide(self.wide_of(operand)?)),
            None => Ok(Value::Word(self.word_of(operand)?)),
        }
    }

    pub fn value(&self, at: usize, ty: Type) -> Result<Value> {
        self.value_of(self.operand(at)?, ty)
    }

    pub fn target_of(&self, operand: &Operand) -> Result<Target> {
        match operand {
            Operand::Sink => Ok(Target::Nowhere),
            Operand::Register(register) => Ok(match self.slot(*register) {
                Slot::Half(number) => Target::Half(number),
                Slot::Word(number) => Target::Word(number),
                Slot::Wide(number) => Target::Wide(number),
                Slot::Bit(number) => Target::Bit(number),
                Slot::Unsupported => return Err("a register of 128 bits".to_owned()),
            }),
            _ => Err("a result that is not a register".to_owned()),
        }
    }

    pub fn target(&self, at: usize) -> Result<Target> {
        self.target_of(self.operand(at)?)
    }

    pub fn word_target(&self, at: usize) -> Result<u32> {
        match self.target(at)? {
            Target::Word(number) | Target::Half(number) => Ok(number),
            _ => Err("a result of another size".to_owned()),
        }
    }

    pub fn wide_target(&self, at: usize) -> Result<u32> {
        match self.target(at)? {
            Target::Wide(number) => Ok(number),
            _ => Err("a result of another size".to_owned()),
        }
    }

    pub fn bit_target(&self, at: usize) -> Result<u32> {
        match self.target(at)? {
            Target::Bit(number) => Ok(number),
            _ => Err("a result that is not a predicate".to_owned()),
        }
    }

    pub fn address(&self, at: usize) -> Result<Address> {
        match self.operand(at)? {
            Operand::Address { base, offset, more } if more.is_empty() => {
                self.address_of(base, *offset)
            }
            _ => Err(format!("operand {} is not an address", at + 1)),
        }
    }

    pub fn address_of(&self, base: &Operand, offset: i64) -> Result<Address> {
        let base = match base {
            Operand::Register(register) => match self.slot(*register) {
                Slot::Wide(_) => Value::Wide(self.wide_of(base)?),
                _ => Value::Word(self.word_of(base)?),
            },
            _ => Value::Wide(self.wide_of(base)?),
        };
        Ok(Address { base, offset })
    }

    /// The registers of a vector, or of a single operand.
    pub fn parts(&self, at: usize) -> Result<&'a [Operand]> {
        match self.operand(at)? {
            Operand::Vector(parts) => Ok(parts),
            other => Ok(std::slice::from_ref(other)),
        }
    }

    pub fn words(&self, at: usize) -> Result<Box<[Word]>> {
        self.parts(at)?
            .iter()
            .map(|part| self.word_of(part))
            .collect()
    }

    /// Results of 32 bits, of which some may go nowhere.
    pub fn word_targets(&self, at: usize) -> Result<Box<[Target]>> {
        self.parts(at)?
            .iter()
            .map(|part| match self.target_of(part)? {
                target @ (Target::Word(_) | Target::Nowhere) => Ok(target),
                _ => Err("a result of another size".to_owned()),
            })
            .collect()
    }

    /// The same where none may: wgmma reads what it writes, and ptxas has no sinks for tcgen05.ld.
    pub fn word_registers(&self, at: usize) -> Result<Box<[u32]>> {
        self.word_targets(at)?
            .iter()
            .map(|target| match target {
                Target::Word(number) => Ok(*number),
                _ => Err("a result that is a sink".to_owned()),
            })
            .collect()
    }

    pub fn immediate(&self, at: usize) -> Result<u64> {
        match self.operand(at)? {
            Operand::Integer(value) => Ok(*value),
            _ => Err(format!("operand {} is not a number", at + 1)),
        }
    }

    pub fn space(&mut self) -> Space {
        self.opcode
            .takes_one(&[
                ("global", Space::Global),
                ("const", Space::Global),
                ("shared::cluster", Space::Shared),
                ("shared::cta", Space::Shared),
                ("shared", Space::Shared),
                ("local", Space::Local),
            ])
            .unwrap_or(Space::Generic)
    }

    /// Memory order and scope, or what is usual without a word for them.
    pub fn takes_strength(&mut self, usual: Scope) -> Strength {
        self.opcode.takes("weak");
        let words = [
            "volatile", "relaxed", "mmio", "acquire", "release", "acq_rel",
        ];
        let [volatile, relaxed, mmio, acquire, release, both] =
            words.map(|word| self.opcode.takes(word));
        let strong = volatile || relaxed || mmio || acquire || release || both;
        let usual = if strong { Scope::Device } else { usual };
        Strength {
            scope: self.takes_scope().unwrap_or(usual),
            acquires: acquire || both,
            releases: release || both,
        }
    }

    pub fn takes_scope(&mut self) -> Option<Scope> {
        self.opcode.takes_one(&[
            ("cta", Scope::Block),
            ("cluster", Scope::Cluster),
            ("gpu", Scope::Device),
            ("gl", Scope::Device),
            ("sys", Scope::Device),
        ])
    }
}
