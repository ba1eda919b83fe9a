//! Arithmetic and logic.

use syntax::Type;

use super::{Form, Result};
use crate::lanes::float::Mode;
use crate::lanes::{float, half, integer};
use crate::number::Rounding;
use crate::op::*;

pub(super) const ROUNDINGS: [(&str, Rounding); 5] = [
    ("rn", Rounding::NearestEven),
    ("rz", Rounding::Zero),
    ("rm", Rounding::Down),
    ("rp", Rounding::Up),
    ("rna", Rounding::NearestAway),
];

/// Words that tell forms of one opcode apart.
const VARIANTS: [&str; 10] = [
    "lo", "hi", "wide", "approx", "full", "shiftamt", "NaN", "l", "r", "relu",
];

impl Form<'_> {
    pub(super) fn arithmetic(&mut self) -> Result<Option<Op>> {
        match self.opcode.base {
            "setp" => return self.setp().map(Some),
            "set" => return self.set().map(Some),
            "selp" => return self.selp().map(Some),
            "cvt" => return self.cvt().map(Some),
            "lop3" => return self.lop3().map(Some),
            "bfi" => return self.bfi().map(Some),
            "addc" | "subc" => return self.carry(true).map(Some),
            "add" | "sub" | "mul" | "mad" | "fma" | "div" | "rem" | "min" | "max" | "abs"
            | "neg" | "not" | "and" | "or" | "xor" | "shl" | "shr" | "popc" | "clz" | "brev"
            | "bfind" | "bfe" | "prmt" | "shf" | "sad" | "cnot" | "copysign" | "ex2" | "lg2"
            | "rcp" | "sqrt" | "rsqrt" | "sin" | "cos" | "tanh" | "dp4a" => {}
            _ => return Ok(None),
        }
        if matches!(self.opcode.base, "add" | "sub") && self.opcode.takes("cc") {
            return self.carry(false).map(Some);
        }
        self.regular().map(Some)
    }

    pub(super) fn regular(&mut self) -> Result<Op> {
        let mut name = self.opcode.base.to_owned();
        for variant in VARIANTS {
            if self.opcode.takes(variant) {
                name = format!("{name}.{variant}");
            }
        }
        if self.opcode.base == "shf" {
            let wraps = self.opcode.takes("wrap");
            name = format!("{name}.{}", if wraps { "wrap" } else { "clamp" });
            if !wraps && !self.opcode.takes("clamp") {
                return Err("neither wrap nor clamp".to_owned());
            }
        }
        let mode = Mode {
            flushes: self.opcode.takes("ftz"),
            rounding: self.opcode.takes_one(&ROUNDINGS),
            saturates: self.opcode.takes("sat"),
        };
        let ty = self.ty()?;
        self.check_kinds(ty)?;
        let second = self.opcode.takes_type();
        if self.opcode.base == "dp4a" {
            name = format!(
                "{name}.{}",
                if second == Some(Type::S32) {
                    "s32"
                } else {
                    "u32"
                }
            );
        }
        let sources = self.operands.len().saturating_sub(1);
        let unknown = || format!("{name} of {ty:?} with {sources} operands");
        let plain = mode == Mode::default();
        match (ty, sources) {
            (Type::Pred, _) => {
                let target = self.bit_target(0)?;
                let logic = match name.as_str() {
                    "and" => Logic::And,
                    "or" => Logic::Or,
                    "xor" => Logic::Xor,
                    "not" if sources == 1 => {
                        let (a, b) = (self.bit(1)?, Bit::Constant(true));
                        return Ok(Op::BitLogic {
                            logic: Logic::Xor,
                            target,
                            a,
                            b,
                        });
                    }
                    _ => return Err(unknown()),
                };
                Ok(Op::BitLogic {
                    logic,
                    target,
                    a: self.bit(1)?,
                    b: self.bit(2)?,
                })
            }
            (Type::F32, 1) if second.is_none() => Ok(Op::W1(
                float::single1(&name, mode).ok_or_else(unknown)?,
                self.word_target(0)?,
                self.word(1)?,
            )),
            (Type::F32, 2) => {
                let function = match second {
                    None => float::single2(&name, mode),
                    Some(narrow @ (Type::Bf16 | Type::F16)) if !mode.saturates => {
                        half::mixed2(&name, narrow == Type::Bf16)
                    }
                    Some(_) => None,
                };
                Ok(Op::W2(
                    function.ok_or_else(unknown)?,
                    self.word_target(0)?,
                    self.word(1)?,
                    self.word(2)?,
                ))
            }
            (Type::F32, 3) => {
                let function = match second {
                    None => float::single3(&name, mode),
                    Some(narrow @ (Type::Bf16 | Type::F16)) if name == "fma" && !mode.saturates => {
                        Some(half::mixed3(narrow == Type::Bf16))
                    }
                    Some(_) => None,
                };
                let function = function.ok_or_else(unknown)?;
                Ok(Op::W3(
                    function,
                    self.word_target(0)?,
                    self.word(1)?,
                    self.word(2)?,
                    self.word(3)?,
                ))
            }
            (Type::F32x2, 2) => {
                let function = float::pair2(&name, mode).ok_or_else(unknown)?;
                Ok(Op::D2(
                    function,
                    self.wide_target(0)?,
                    self.wide(1)?,
                    self.wide(2)?,
                ))
            }
            (Type::F32x2, 3) => {
                let function = float::pair3(&name, mode).ok_or_else(unknown)?;
                Ok(Op::D3(
                    function,
                    self.wide_target(0)?,
                    self.wide(1)?,
                    self.wide(2)?,
                    self.wide(3)?,
                ))
            }
            (Type::F64, _) => {
                if mode
                    .rounding
                    .is_some_and(|rounding| rounding != Rounding::NearestEven)
                    || mode.saturates
                {
                    return Err(unknown());
                }
                let target = self.wide_target(0)?;
                match sources {
                    1 => Ok(Op::D1(
                        float::double1(&name).ok_or_else(unknown)?,
                        target,
                        self.wide(1)?,
                    )),
                    2 => Ok(Op::D2(
                        float::double2(&name).ok_or_else(unknown)?,
                        target,
                        self.wide(1)?,
                        self.wide(2)?,
                    )),
                    _ => {
                        let function = float::double3(&name).ok_or_else(unknown)?;
                        Ok(Op::D3(
                            function,
                            target,
                            self.wide(1)?,
                            self.wide(2)?,
                            self.wide(3)?,
                        ))
                    }
                }
            }
            (Type::F16 | Type::F16x2 | Type::Bf16 | Type::Bf16x2, _) => {
                if mode.saturates
                    || mode
                        .rounding
                        .is_some_and(|rounding| rounding != Rounding::NearestEven)
                {
                    return Err(unknown());
                }
                // ex2.approx.ftz.bf16 is the only one that flushes: its inputs alone.
                if mode.flushes && name != "ex2.approx" {
                    return Err(unknown());
                }
                let paired = matches!(ty, Type::F16x2 | Type::Bf16x2);
                let brain = matches!(ty, Type::Bf16 | Type::Bf16x2);
                let target = self.word_target(0)?;
                match sources {
                    1 => {
                        let function = if brain {
                            half::bf16_1(&name, paired)
                        } else {
                            half::f16_1(&name, paired)
                        };
                        Ok(Op::W1(function.ok_or_else(unknown)?, target, self.word(1)?))
                    }
                    2 => {
                        let function = if brain {
                            half::bf16_2(&name, paired)
                        } else {
                            half::f16_2(&name, paired)
                        };
                        Ok(Op::W2(
                            function.ok_or_else(unknown)?,
                            target,
                            self.word(1)?,
                            self.word(2)?,
                        ))
                    }
                    _ => {
                        let function = if brain {
                            half::bf16_3(&name, paired)
                        } else {
                            half::f16_3(&name, paired)
                        };
                        Ok(Op::W3(
                            function.ok_or_else(unknown)?,
                            target,
                            self.word(1)?,
                            self.word(2)?,
                            self.word(3)?,
                        ))
                    }
                }
            }
            _ if mode.saturates && plain_but_saturating(mode) && sources == 2 => {
                let function = integer::word2(&format!("{name}.sat"), ty).ok_or_else(unknown)?;
                Ok(Op::W2(
                    function,
                    self.word_target(0)?,
                    self.word(1)?,
                    self.word(2)?,
                ))
            }
            _ if !plain => Err(unknown()),
            _ => self
                .whole(&name, ty, sources)
                .and_then(|op| op.ok_or_else(unknown)),
        }
    }

    pub(super) fn whole(&self, name: &str, ty: Type, sources: usize) -> Result<Option<Op>> {
        let wide = ty.bits() == 64;
        Ok(match (sources, wide) {
            (1, false) => match integer::word1(name, ty) {
                Some(function) => Some(Op::W1(function, self.word_target(0)?, self.word(1)?)),
                None => None,
            },
            (1, true) => match (integer::wide1(name, ty), integer::wide_to_word(name, ty)) {
                (Some(function), _) => Some(Op::D1(function, self.wide_target(0)?, self.wide(1)?)),
                (None, Some(function)) => {
                    Some(Op::DW(function, self.word_target(0)?, self.wide(1)?))
                }
                (None, None) => None,
            },
            (2, _) if name == "mul.wide" && ty.bits() == 32 => match integer::word_product(ty) {
                Some(function) => Some(Op::Wwd(
                    function,
                    self.wide_target(0)?,
                    self.word(1)?,
                    self.word(2)?,
                )),
                None => None,
            },
            (3, _) if name == "mad.wide" && ty.bits() == 32 => {
                match integer::word_product_sum(ty) {
                    Some(function) => Some(Op::Wwdd(
                        function,
                        self.wide_target(0)?,
                        self.word(1)?,
                        self.word(2)?,
                        self.wide(3)?,
                    )),
                    None => None,
                }
            }
            (2, false) => match integer::word2(name, ty) {
                Some(function) => Some(Op::W2(
                    function,
                    self.word_target(0)?,
                    self.word(1)?,
                    self.word(2)?,
                )),
                None => None,
            },
            (2, true) => match (integer::wide2(name, ty), integer::wide_shift(name, ty)) {
                (Some(function), _) => Some(Op::D2(
                    function,
                    self.wide_target(0)?,
                    self.wide(1)?,
                    self.wide(2)?,
                )),
                (None, Some(function)) => Some(Op::Dwd(
                    function,
                    self.wide_target(0)?,
                    self.wide(1)?,
                    self.word(2)?,
                )),
                (None, None) => None,
            },
            (3, true) if name == "bfe" => {
                let function = integer::extract_wides(ty == Type::S64);
                Some(Op::Dwwd(
                    function,
                    self.wide_target(0)?,
                    self.wide(1)?,
                    self.word(2)?,
                    self.word(3)?,
                ))
            }
            (3, true) => match integer::wide3(name, ty) {
                Some(function) => Some(Op::D3(
                    function,
                    self.wide_target(0)?,
                    self.wide(1)?,
                    self.wide(2)?,
                    self.wide(3)?,
                )),
                None => None,
            },
            (3, false) => match integer::word3(name, ty) {
                Some(function) => Some(Op::W3(
                    function,
                    self.word_target(0)?,
                    self.word(1)?,
                    self.word(2)?,
                    self.word(3)?,
                )),
                None => None,
            },
            _ => None,
        })
    }

    pub(super) fn carry(&mut self, takes: bool) -> Result<Op> {
        let gives = !takes || self.opcode.takes("cc");
        let subtracts = self.opcode.base.starts_with("sub");
        let ty = self.ty()?;
        self.expect_operands(3..=3)?;
        if !matches!(ty.bits(), 32 | 64) {
            return Err(format!("a carry of {ty:?}"));
        }
        let wide = ty.bits() == 64;
        Ok(Op::Carry {
            subtracts,
            takes,
            gives,
            wide,
            target: self.target(0)?,
            a: self.value(1, ty)?,
            b: self.value(2, ty)?,
        })
    }

    pub(super) fn bfi(&mut self) -> Result<Op> {
        let ty = self.ty()?;
        self.expect_operands(5..=5)?;
        match ty {
            Type::B32 => Ok(Op::W4(
                integer::insert_words,
                self.word_target(0)?,
                [self.word(1)?, self.word(2)?, self.word(3)?, self.word(4)?],
            )),
            Type::B64 => Ok(Op::Ddwwd(
                integer::insert_wides,
                self.wide_target(0)?,
                self.wide(1)?,
                self.wide(2)?,
                self.word(3)?,
                self.word(4)?,
            )),
            _ => Err(format!("bfi of {ty:?}")),
        }
    }

    pub(super) fn lop3(&mut self) -> Result<Op> {
        if self.ty()? != Type::B32 {
            return Err("lop3 of another type".to_owned());
        }
        self.expect_operands(5..=5)?;
        let table = u8::try_from(self.immediate(4)?)
            .map_err(|_| "a table of more than 8 bits".to_owned())?;
        Ok(Op::Lop3 {
            table,
            target: self.word_target(0)?,
            a: self.word(1)?,
            b: self.word(2)?,
            c: self.word(3)?,
        })
    }
}

fn plain_but_saturating(mode: Mode) -> bool {
    !mode.flushes && mode.rounding.is_none()
}
