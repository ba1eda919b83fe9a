//! Comparisons, selections and conversions.

use syntax::{Operand, Type};

use super::arithmetic::ROUNDINGS;
use super::{Form, Result};
use crate::convert::Convert;
use crate::lanes::compare;
use crate::number::{f16_to_f32, f32_to_bf16, f32_to_f16, Rounding};
use crate::op::*;

impl Form<'_> {
    pub(super) fn comparison(&mut self) -> Result<&'static str> {
        const NAMES: [&str; 18] = [
            "eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs", "equ", "neu", "ltu", "leu",
            "gtu", "geu", "num", "nan",
        ];
        NAMES
            .into_iter()
            .find(|name| self.opcode.takes(name))
            .ok_or_else(|| "no comparison".to_owned())
    }

    pub(super) fn setp(&mut self) -> Result<Op> {
        let name = self.comparison()?;
        let logic =
            self.opcode
                .takes_one(&[("and", Logic::And), ("or", Logic::Or), ("xor", Logic::Xor)]);
        let flushes = self.opcode.takes("ftz");
        let ty = self.ty()?;
        self.check_kinds(ty)?;
        self.expect_operands(if logic.is_some() { 4..=4 } else { 3..=3 })?;
        let targets = match self.operand(0)? {
            Operand::Pair(pair) => [self.target_of(&pair.0)?, self.target_of(&pair.1)?],
            single => [self.target_of(single)?, Target::Nowhere],
        };
        if targets
            .iter()
            .any(|target| !matches!(target, Target::Bit(_) | Target::Nowhere))
        {
            return Err("a result that is not a predicate".to_owned());
        }
        let join = match logic {
            Some(logic) => Some((logic, self.bit(3)?)),
            None => None,
        };
        let unknown = || format!("{name} of {ty:?}");
        if ty.bits() == 64 {
            let compare = compare::wide(name, ty).ok_or_else(unknown)?;
            return Ok(Op::CompareD {
                compare,
                targets,
                a: self.wide(1)?,
                b: self.wide(2)?,
                join,
            });
        }
        let compare = compare::word(name, ty, flushes).ok_or_else(unknown)?;
        Ok(Op::CompareW {
            compare,
            targets,
            a: self.word(1)?,
            b: self.word(2)?,
            join,
        })
    }

    pub(super) fn set(&mut self) -> Result<Op> {
        let name = self.comparison()?;
        let flushes = self.opcode.takes("ftz");
        let (to, from) = (self.ty()?, self.ty()?);
        self.expect_operands(3..=3)?;
        let yes = match to {
            Type::U32 | Type::S32 => u32::MAX,
            Type::F32 => 1f32.to_bits(),
            _ => return Err(format!("a result of {to:?}")),
        };
        let compare =
            compare::word(name, from, flushes).ok_or_else(|| format!("{name} of {from:?}"))?;
        Ok(Op::SetW {
            compare,
            target: self.word_target(0)?,
            a: self.word(1)?,
            b: self.word(2)?,
            yes,
        })
    }

    pub(super) fn selp(&mut self) -> Result<Op> {
        let ty = self.ty()?;
        self.expect_operands(4..=4)?;
        if ty.bits() == 64 {
            return Ok(Op::SelectD(
                self.wide_target(0)?,
                self.wide(1)?,
                self.wide(2)?,
                self.bit(3)?,
            ));
        }
        Ok(Op::SelectW(
            self.word_target(0)?,
            self.word(1)?,
            self.word(2)?,
            self.bit(3)?,
        ))
    }

    pub(super) fn cvt(&mut self) -> Result<Op> {
        const INTEGRAL: [(&str, Rounding); 4] = [
            ("rni", Rounding::NearestEven),
            ("rzi", Rounding::Zero),
            ("rmi", Rounding::Down),
            ("rpi", Rounding::Up),
        ];
        let integral = self.opcode.takes_one(&INTEGRAL);
        let rounding = self.opcode.takes_one(&ROUNDINGS);
        let flushes = self.opcode.takes("ftz");
        let satfinite = self.opcode.takes("satfinite");
        let saturates = self.opcode.takes("sat");
        let relu = self.opcode.takes("relu");
        let (to, from) = (self.ty()?, self.ty()?);
        let convert = Convert {
            to,
            from,
            rounding,
            integral,
            flushes,
            saturates,
            satfinite,
            relu,
        };
        let sources = self.operands.len().saturating_sub(1);
        if !convert.is_known(sources) {
            return Err(format!(
                "a conversion of {from:?} to {to:?} from {sources} operands"
            ));
        }
        let target = self.target(0)?;
        if let Some(op) = self.quick(&convert, target)? {
            return Ok(op);
        }
        let b = if sources == 2 {
            Some(self.value(2, from)?)
        } else {
            None
        };
        Ok(Op::Convert {
            convert,
            target,
            a: self.value(1, from)?,
            b,
        })
    }

    // The conversions that kernels are full of, over whole warps.
    pub(super) fn quick(&self, convert: &Convert, target: Target) -> Result<Option<Op>> {
        use Type::{Bf16, Bf16x2, F16x2, F16, F32, S32, S64, U32, U64};
        let nearest = matches!(convert.rounding, None | Some(Rounding::NearestEven));
        if !nearest
            || convert.flushes
            || convert.saturates
            || convert.satfinite
            || convert.relu
            || convert.integral.is_some()
        {
            return Ok(None);
        }
        let one: Option<W1> = match (convert.to, convert.from) {
            (F32, Bf16) => Some(|a| a.map(|a| a << 16)),
            (F32, F16) => Some(|a| a.map(|a| f16_to_f32(a & 0xffff).to_bits())),
            (F32, S32) => Some(|a| a.map(|a| (a as i32 as f32).to_bits())),
            (F32, U32) => Some(|a| a.map(|a| (a as f32).to_bits())),
            (Bf16, F32) => Some(|a| a.map(|a| f32_to_bf16(f32::from_bits(a)))),
            (F16, F32) => Some(|a| a.map(|a| f32_to_f16(f32::from_bits(a)))),
            _ => None,
        };
        if let (Some(function), Target::Word(number) | Target::Half(number)) = (one, target) {
            return Ok(Some(Op::W1(function, number, self.word(1)?)));
        }
        let two: Option<W2> = match (convert.to, convert.from) {
            (Bf16x2, F32) => Some(|a, b| {
                std::array::from_fn(|lane| {
                    f32_to_bf16(f32::from_bits(a[lane])) << 16
                        | f32_to_bf16(f32::from_bits(b[lane]))
                })
            }),
            (F16x2, F32) => Some(|a, b| {
                std::array::from_fn(|lane| {
                    f32_to_f16(f32::from_bits(a[lane])) << 16 | f32_to_f16(f32::from_bits(b[lane]))
                })
            }),
            _ => None,
        };
        if let (Some(function), Target::Word(number)) = (two, target) {
            return Ok(Some(Op::W2(function, number, self.word(1)?, self.word(2)?)));
        }
        // A source register may be wider than its type.
        Ok(
            match (
                convert.to,
                convert.from,
                target,
                self.value(1, convert.from)?,
            ) {
                (U64 | S64, U32, Target::Wide(number), Value::Word(word)) => {
                    Some(Op::WD(|a| a.map(u64::from), number, word))
                }
                (S64 | U64, S32, Target::Wide(number), Value::Word(word)) => Some(Op::WD(
                    |a| a.map(|a| i64::from(a as i32) as u64),
                    number,
                    word,
                )),
                (U32 | S32, U64 | S64, Target::Word(number), Value::Wide(wide)) => {
                    Some(Op::DW(|a| a.map(|a| a as u32), number, wide))
                }
                _ => None,
            },
        )
    }
}
