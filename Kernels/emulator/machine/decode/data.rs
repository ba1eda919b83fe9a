//! Moves, memory, control flow, and what has no effect on values.

use syntax::{Operand, Symbol, Type};

use super::{Form, Result};
use crate::op::*;

impl Form<'_> {
    pub(super) fn data(&mut self) -> Result<Option<Op>> {
        let base = self.opcode.base;
        Ok(Some(match base {
            "mov" => self.mov()?,
            "ld" => self.ld()?,
            "ldu" => self.ld()?,
            "st" if !self.opcode.takes("async") => self.st()?,
            "atom" => self.atom()?,
            "red" if !self.opcode.takes("async") => self.red()?,
            "cvta" => self.cvta()?,
            "isspacep" => {
                let space = self.space();
                Op::IsSpace {
                    space,
                    target: self.bit_target(0)?,
                    source: self.value(1, Type::U64)?,
                }
            }
            "mapa" => {
                let generic = self.space() == Space::Generic;
                let ty = self.ty()?;
                Op::MapShared {
                    target: self.target(0)?,
                    source: self.value(1, ty)?,
                    rank: self.word(2)?,
                    generic,
                }
            }
            "getctarank" => {
                self.space();
                let ty = self.ty()?;
                Op::GetRank {
                    target: self.word_target(0)?,
                    source: self.value(1, ty)?,
                }
            }
            "bra" => {
                self.opcode.takes("uni");
                match self.operand(0)? {
                    Operand::Label(target) => Op::Branch(*target),
                    _ => return Err("a branch to something that is not a label".to_owned()),
                }
            }
            "brx" => {
                self.opcode.takes("idx");
                self.opcode.takes("uni");
                match self.operand(1)? {
                    Operand::Table(table) => Op::BranchTable {
                        targets: self.context.flat.tables[*table as usize].clone().into(),
                        index: self.word(0)?,
                    },
                    _ => return Err("a branch without a table".to_owned()),
                }
            }
            "ret" | "exit" => {
                self.opcode.takes("uni");
                Op::Exit
            }
            "trap" => Op::Trap("trap".to_owned()),
            "brkpt" => Op::Trap("brkpt".to_owned()),
            "emulator" if self.opcode.takes("assertion") => {
                Op::Trap("an assertion failed".to_owned())
            }
            "emulator" if self.opcode.takes("print") => Op::Nothing,
            "activemask" => {
                self.ty()?;
                Op::ActiveMask(self.word_target(0)?)
            }
            "createpolicy" => {
                for word in ["fractional", "range", "cvt", "global", "L2"] {
                    self.opcode.takes(word);
                }
                while self.opcode.takes_prefixed("L2::").is_some() {}
                self.ty()?;
                Op::MoveWide(self.wide_target(0)?, Wide::Immediate(0))
            }
            "fence" | "membar" => self.fence(),
            "setmaxnreg" => self.registers()?,
            "griddepcontrol" if self.opcode.takes("wait") => Op::GridWait,
            "griddepcontrol" if self.opcode.takes("launch_dependents") => Op::Nothing,
            base => match self.without_effect(base) {
                Some(op) => op,
                None => return Ok(None),
            },
        }))
    }

    // Hints, and orders that a machine which runs in order keeps by itself.
    fn without_effect(&mut self, base: &str) -> Option<Op> {
        let words: &[&str] = match base {
            "nanosleep" => &["u32"],
            "prefetch" => &[
                "global",
                "local",
                "L1",
                "L2",
                "tensormap",
                "param",
                "const",
                "L2::evict_last",
                "L2::evict_normal",
            ],
            "prefetchu" => &["L1"],
            "discard" => &["global", "L2"],
            "applypriority" => &["global", "L2::evict_normal"],
            _ => return None,
        };
        for word in words {
            self.opcode.takes(word);
        }
        Some(Op::Nothing)
    }

    // How many registers a warp has changes no value here.
    fn registers(&mut self) -> Result<Op> {
        if self.opcode.takes("inc") == self.opcode.takes("dec") {
            return Err("neither inc nor dec".to_owned());
        }
        if !self.opcode.takes("sync") || !self.opcode.takes("aligned") || self.ty()? != Type::U32 {
            return Err("not .sync.aligned.u32".to_owned());
        }
        self.expect_operands(1..=1)?;
        let count = self.immediate(0)?;
        if !(24..=256).contains(&count) || !count.is_multiple_of(8) {
            return Err(format!(
                "{count} registers: not a multiple of 8 from 24 to 256"
            ));
        }
        Ok(Op::Nothing)
    }

    fn fence(&mut self) -> Op {
        let scope = self.takes_scope();
        for word in ["sc", "acq_rel", "acquire", "release", "alias"] {
            self.opcode.takes(word);
        }
        let [global, cta, cluster] =
            ["global", "shared::cta", "shared::cluster"].map(|word| self.opcode.takes(word));
        let shared = cta || cluster;
        for word in [
            "async::generic",
            "tensormap::generic",
            "sync_restrict::shared::cta",
            "sync_restrict::shared::cluster",
        ] {
            self.opcode.takes(word);
        }
        let [mbarriers, proxy, asynchronous] =
            ["mbarrier_init", "proxy", "async"].map(|word| self.opcode.takes(word));
        match (mbarriers, asynchronous, scope) {
            (true, ..) => Op::FenceMbarrierInit,
            (_, true, _) => Op::FenceProxyAsync {
                memories: [shared || !global, global || !shared],
            },
            (.., Some(scope)) if !proxy => Op::Fence(scope),
            _ => Op::Nothing,
        }
    }

    fn mov(&mut self) -> Result<Op> {
        let ty = self.ty()?;
        self.expect_operands(2..=2)?;
        let (to, from) = (self.operand(0)?, self.operand(1)?);
        match (to, from) {
            (Operand::Vector(parts), _) => {
                let bits = self.part_bits(ty, parts)?;
                let parts = parts
                    .iter()
                    .map(|part| self.target_of(part))
                    .collect::<Result<_>>()?;
                Ok(Op::Unpack {
                    parts,
                    source: self.value(1, ty)?,
                    bits,
                })
            }
            (_, Operand::Vector(parts)) => {
                let bits = self.part_bits(ty, parts)?;
                let parts = parts
                    .iter()
                    .map(|operand| self.value_of(operand, Type::B32))
                    .collect::<Result<_>>()?;
                Ok(Op::Pack {
                    target: self.target(0)?,
                    parts,
                    bits,
                })
            }
            (_, Operand::Special(special)) => Ok(Op::Special(self.target(0)?, *special)),
            _ => match (self.target(0)?, ty) {
                (Target::Bit(number), Type::Pred) => Ok(Op::MoveBit(number, self.bit(1)?)),
                (Target::Wide(number), _) => Ok(Op::MoveWide(number, self.wide(1)?)),
                (Target::Word(number) | Target::Half(number), _) if ty.bits() <= 32 => {
                    Ok(Op::MoveWord(number, self.word(1)?))
                }
                _ => Err("operands of different sizes".to_owned()),
            },
        }
    }

    // Of each part of a value that is taken apart or put together.
    fn part_bits(&self, ty: Type, parts: &[Operand]) -> Result<u32> {
        let count = parts.len() as u32;
        if ty.bits() > 64 || !matches!(count, 2 | 4) || ty.bits() < 8 * count {
            return Err(format!("{count} parts of {ty:?}"));
        }
        Ok(ty.bits() / count)
    }

    fn vector_length(&mut self) -> usize {
        self.opcode
            .takes_one(&[("v2", 2), ("v4", 4), ("v8", 8)])
            .unwrap_or(1)
    }

    fn takes_parameter_space(&mut self) -> bool {
        ["param", "param::entry", "param::func"]
            .iter()
            .any(|word| self.opcode.takes(word))
    }

    /// A parameter by name: a kernel's own, or a variable of a call.
    fn parameter_address(&self, at: usize) -> Result<std::result::Result<u32, Address>> {
        let Operand::Address { base, offset, more } = self.operand(at)? else {
            return Err("not an address".to_owned());
        };
        if !more.is_empty() {
            return Err("not an address".to_owned());
        }
        match &**base {
            Operand::Symbol(Symbol::Parameter(number)) => {
                let start = i64::from(self.context.parameters[*number as usize]);
                u32::try_from(start + offset)
                    .map(Ok)
                    .map_err(|_| "an offset before the parameters".to_owned())
            }
            _ => Ok(Err(self.address_of(base, *offset)?)),
        }
    }

    fn ld(&mut self) -> Result<Op> {
        let strength = self.takes_strength(Scope::Weak);
        let hinted = self.opcode.takes_cache_hints();
        let in_parameters = self.takes_parameter_space();
        let space = self.space();
        let count = self.vector_length();
        let ty = self.ty()?;
        self.expect_operands(2..=2 + usize::from(hinted))?;
        let targets: Box<[Target]> = self
            .parts(0)?
            .iter()
            .map(|part| self.target_of(part))
            .collect::<Result<_>>()?;
        self.check_access(ty, count, targets.len())?;
        self.check_width(ty, count, space)?;
        if in_parameters {
            return Ok(match self.parameter_address(1)? {
                Ok(offset) => Op::LoadParameter {
                    ty,
                    targets,
                    offset,
                },
                Err(address) => {
                    let Operand::Address { base, .. } = self.operand(1)? else {
                        return Err("not an address".to_owned());
                    };
                    let is_local = matches!(**base, Operand::Symbol(_));
                    let space = if is_local {
                        Space::Local
                    } else {
                        Space::Global
                    };
                    Op::Load {
                        ty,
                        space,
                        strength,
                        targets,
                        address,
                    }
                }
            });
        }
        Ok(Op::Load {
            ty,
            space,
            strength,
            targets,
            address: self.address(1)?,
        })
    }

    fn check_access(&self, ty: Type, count: usize, parts: usize) -> Result<()> {
        if parts != count {
            return Err(format!("{parts} registers for {count} values"));
        }
        match ty.bits() {
            8 | 16 | 32 | 64 => Ok(()),
            _ => Err(format!("an access of {ty:?}")),
        }
    }

    // 16 bytes at once, and 32 of global memory from Blackwell on.
    fn check_width(&self, ty: Type, count: usize, space: Space) -> Result<()> {
        let number = self.context.target.strip_prefix("sm_").unwrap_or_default();
        let number = number.trim_end_matches(char::is_alphabetic).parse::<u32>();
        let most = match number {
            Ok(100..) if space == Space::Global => 32,
            _ => 16,
        };
        let bytes = ty.bytes() as usize * count;
        if bytes <= most {
            return Ok(());
        }
        Err(format!(
            "an access of {bytes} bytes; {most} are the most there"
        ))
    }

    fn st(&mut self) -> Result<Op> {
        let strength = self.takes_strength(Scope::Weak);
        let hinted = self.opcode.takes_cache_hints();
        let in_parameters = self.takes_parameter_space();
        let space = if in_parameters {
            Space::Local
        } else {
            self.space()
        };
        let count = self.vector_length();
        let ty = self.ty()?;
        self.expect_operands(2..=2 + usize::from(hinted))?;
        let values: Box<[Value]> = self
            .parts(1)?
            .iter()
            .map(|part| self.value_of(part, ty))
            .collect::<Result<_>>()?;
        self.check_access(ty, count, values.len())?;
        self.check_width(ty, count, space)?;
        Ok(Op::Store {
            ty,
            space,
            strength,
            values,
            address: self.address(0)?,
        })
    }

    pub(super) fn atomic(&mut self) -> Result<Atomic> {
        self.opcode
            .takes_one(&[
                ("add", Atomic::Add),
                ("min", Atomic::Min),
                ("max", Atomic::Max),
                ("and", Atomic::And),
                ("or", Atomic::Or),
                ("xor", Atomic::Xor),
                ("exch", Atomic::Exchange),
                ("cas", Atomic::CompareAndSwap),
                ("inc", Atomic::Increment),
                ("dec", Atomic::Decrement),
            ])
            .ok_or_else(|| "no operation".to_owned())
    }

    pub(super) fn check_atomic(atomic: Atomic, ty: Type) -> Result<()> {
        use Type::{Bf16, Bf16x2, F16x2, B32, B64, F16, F32, F64, S32, S64, U32, U64};
        let known = match atomic {
            Atomic::Add => matches!(
                ty,
                U32 | S32 | U64 | S64 | F32 | F64 | F16 | Bf16 | F16x2 | Bf16x2
            ),
            Atomic::Min | Atomic::Max => {
                matches!(ty, U32 | S32 | U64 | S64 | F16x2 | Bf16x2 | F16 | Bf16)
            }
            Atomic::Increment | Atomic::Decrement => ty == U32,
            _ => matches!(ty, B32 | B64 | U32 | U64 | S32 | S64),
        };
        if known {
            Ok(())
        } else {
            Err(format!("{atomic:?} of {ty:?}"))
        }
    }

    fn atom(&mut self) -> Result<Op> {
        let strength = self.takes_strength(Scope::Device);
        let hinted = self.opcode.takes_cache_hints();
        let space = self.space();
        let atomic = self.atomic()?;
        self.opcode.takes("noftz");
        let ty = self.ty()?;
        Self::check_atomic(atomic, ty)?;
        let swaps = atomic == Atomic::CompareAndSwap;
        let least = if swaps { 4 } else { 3 };
        self.expect_operands(least..=least + usize::from(hinted))?;
        Ok(Op::Atomic {
            atomic,
            ty,
            space,
            strength,
            target: self.target(0)?,
            address: self.address(1)?,
            value: self.value(2, ty)?,
            swap: if swaps {
                Some(self.value(3, ty)?)
            } else {
                None
            },
        })
    }

    fn red(&mut self) -> Result<Op> {
        let strength = self.takes_strength(Scope::Device);
        let hinted = self.opcode.takes_cache_hints();
        let space = self.space();
        let atomic = self.atomic()?;
        self.opcode.takes("noftz");
        let count = self.vector_length();
        let ty = self.ty()?;
        Self::check_atomic(atomic, ty)?;
        self.expect_operands(2..=2 + usize::from(hinted))?;
        let values: Box<[Value]> = self
            .parts(1)?
            .iter()
            .map(|part| self.value_of(part, ty))
            .collect::<Result<_>>()?;
        self.check_access(ty, count, values.len())?;
        Ok(Op::ReduceVector {
            atomic,
            ty,
            space,
            strength,
            address: self.address(0)?,
            values,
        })
    }

    fn cvta(&mut self) -> Result<Op> {
        let to = self.opcode.takes("to");
        let in_parameters = self.takes_parameter_space();
        let space = if in_parameters {
            Space::Global
        } else {
            self.space()
        };
        let ty = self.ty()?;
        self.expect_operands(2..=2)?;
        let (target, source) = (self.target(0)?, self.value(1, ty)?);
        Ok(if to {
            Op::FromGeneric {
                space,
                target,
                source,
            }
        } else {
            Op::ToGeneric {
                space,
                target,
                source,
            }
        })
    }
}
