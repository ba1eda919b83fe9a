//! Products of matrices in registers and shared memory.

use syntax::{Operand, Type};

use super::{Form, Result};
use crate::op::*;

pub fn element(ty: Type) -> Result<Element> {
    Ok(match ty {
        Type::F16 => Element::F16,
        Type::Bf16 => Element::Bf16,
        Type::Tf32 => Element::Tf32,
        Type::E4m3 => Element::E4m3,
        Type::E5m2 => Element::E5m2,
        Type::S8 => Element::S8,
        Type::U8 => Element::U8,
        _ => return Err(format!("operands of {ty:?}")),
    })
}

/// `m16n8k16` as three numbers.
fn shape(text: &str) -> Option<[u32; 3]> {
    let (m, rest) = text.split_once('n')?;
    let (n, k) = rest.split_once('k')?;
    Some([m.parse().ok()?, n.parse().ok()?, k.parse().ok()?])
}

impl Form<'_> {
    pub(super) fn matrix(&mut self) -> Result<Option<(Op, Gather)>> {
        let op = match self.opcode.base {
            "ldmatrix" | "stmatrix" => self.rows()?,
            "movmatrix" => self.transposition()?,
            "mma" => self.mma()?,
            "wgmma" => self.wgmma()?,
            _ => return Ok(None),
        };
        Ok(Some((op, Gather::Warp)))
    }

    fn takes_aligned(&mut self) -> Result<()> {
        if self.opcode.takes("sync") && self.opcode.takes("aligned") {
            return Ok(());
        }
        Err("not .sync.aligned".to_owned())
    }

    fn rows(&mut self) -> Result<Op> {
        self.takes_aligned()?;
        if !self.opcode.takes("m8n8") {
            return Err("matrices of another shape than 8 by 8".to_owned());
        }
        let count = self
            .opcode
            .takes_one(&[("x1", 1), ("x2", 2), ("x4", 4)])
            .ok_or("no number of matrices")?;
        let transposed = self.opcode.takes("trans");
        if self.space() == Space::Global || self.ty()? != Type::B16 {
            return Err("matrices of other elements".to_owned());
        }
        self.expect_operands(2..=2)?;
        if self.opcode.base == "ldmatrix" {
            let targets = self.word_targets(0)?;
            if targets.len() != count {
                return Err(format!("{} registers", targets.len()));
            }
            return Ok(Op::LoadMatrix {
                targets,
                transposed,
                address: self.address(1)?,
            });
        }
        let values = self.words(1)?;
        if values.len() != count {
            return Err(format!("{} registers", values.len()));
        }
        Ok(Op::StoreMatrix {
            values,
            transposed,
            address: self.address(0)?,
        })
    }

    fn transposition(&mut self) -> Result<Op> {
        self.takes_aligned()?;
        if !self.opcode.takes("m8n8") || !self.opcode.takes("trans") || self.ty()? != Type::B16 {
            return Err("not .m8n8.trans.b16".to_owned());
        }
        self.expect_operands(2..=2)?;
        Ok(Op::MoveMatrix {
            target: self.word_target(0)?,
            source: self.word(1)?,
        })
    }

    fn mma(&mut self) -> Result<Op> {
        self.takes_aligned()?;
        let text = self.opcode.takes_prefixed("m").ok_or("no shape")?;
        let Some([16, 8, depth]) = shape(text) else {
            return Err(format!("shape m{text}"));
        };
        if !self.opcode.takes("row") || !self.opcode.takes("col") {
            return Err("not .row.col".to_owned());
        }
        let saturates = self.opcode.takes("satfinite");
        let (d_type, a, b, c_type) = (self.ty()?, self.ty()?, self.ty()?, self.ty()?);
        let (a_type, b_type) = (element(a)?, element(b)?);
        self.expect_operands(4..=4)?;
        let (d, a, b, c) = (
            self.word_targets(0)?,
            self.words(1)?,
            self.words(2)?,
            self.words(3)?,
        );
        let registers = (depth * a_type.bits() / 64) as usize;
        let whole = matches!(a_type, Element::S8 | Element::U8);
        let half = d_type == Type::F16;
        let sums = if half { 2 } else { 4 };
        let known = a_type.bits() == b_type.bits()
            && c_type == d_type
            && matches!(
                (whole, d_type),
                (true, Type::S32) | (false, Type::F32 | Type::F16)
            )
            && (!half || a_type == Element::F16)
            && (!saturates || whole)
            && matches!(registers, 2 | 4)
            && a.len() == registers
            && b.len() == registers / 2
            && d.len() == sums
            && c.len() == sums
            && (a_type == b_type || a_type.bits() == 8);
        if !known {
            return Err(format!(
                "m16n8k{depth} of {d_type:?} {a_type:?} {b_type:?} {c_type:?}"
            ));
        }
        if whole {
            let signed = |element| element == Element::S8;
            return Ok(Op::MmaInteger {
                depth,
                a_signed: signed(a_type),
                b_signed: signed(b_type),
                saturates,
                d,
                a,
                b,
                c,
            });
        }
        Ok(Op::Mma {
            depth,
            a_type,
            b_type,
            half,
            d,
            a,
            b,
            c,
        })
    }

    fn wgmma(&mut self) -> Result<Op> {
        if self.opcode.takes("fence") {
            self.takes_aligned()?;
            return Ok(Op::WgmmaFence);
        }
        if self.opcode.takes("commit_group") {
            self.takes_aligned()?;
            return Ok(Op::WgmmaCommit);
        }
        if self.opcode.takes("wait_group") {
            self.takes_aligned()?;
            return Ok(Op::WgmmaWait(self.immediate(0)? as u32));
        }
        if !self.opcode.takes("mma_async") {
            return Err("no such opcode".to_owned());
        }
        self.takes_aligned()?;
        let text = self.opcode.takes_prefixed("m").ok_or("no shape")?;
        let Some([64, columns, depth]) = shape(text) else {
            return Err(format!("shape m{text}"));
        };
        let d_type = self.ty()?;
        let (a, b) = (self.ty()?, self.ty()?);
        let (a_type, b_type) = (element(a)?, element(b)?);
        let half = d_type == Type::F16;
        let known = columns % 8 == 0
            && (8..=256).contains(&columns)
            && depth * a_type.bits() == 256
            && a_type.bits() == b_type.bits()
            && matches!(d_type, Type::F32 | Type::F16)
            && !matches!(a_type, Element::S8 | Element::U8)
            && (a_type == b_type || a_type.bits() == 8)
            && (!half || a_type != Element::Bf16 && a_type != Element::Tf32);
        if !known {
            return Err(format!(
                "m64n{columns}k{depth} of {d_type:?} {a_type:?} {b_type:?}"
            ));
        }
        let d = self.word_registers(0)?;
        if d.len() as u32 != columns / if half { 4 } else { 2 } {
            return Err(format!("{} accumulators", d.len()));
        }
        let registers = matches!(self.operand(1)?, Operand::Vector(_));
        let a = if registers {
            let list: Vec<u32> = self
                .words(1)?
                .iter()
                .map(|word| match word {
                    Word::Register(number) => Ok(*number),
                    _ => Err("a fragment that is not a register".to_owned()),
                })
                .collect::<Result<_>>()?;
            WgmmaA::Registers(
                list.try_into()
                    .map_err(|_| "a fragment of other than 4 registers".to_owned())?,
            )
        } else {
            WgmmaA::Shared(self.wide(1)?)
        };
        let sign = |at| match self.immediate(at)? as i64 {
            1 => Ok(false),
            -1 => Ok(true),
            other => Err(format!("a sign of {other}")),
        };
        let flag = |at| match self.immediate(at)? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(format!("a transposition of {other}")),
        };
        let transposes = a_type.bits() == 16;
        let expected = 6 + if !transposes {
            0
        } else {
            2 - usize::from(registers)
        };
        self.expect_operands(expected..=expected)?;
        let (a_transposed, b_transposed) = match (transposes, registers) {
            (false, _) => (false, false),
            (true, true) => (false, flag(6)?),
            (true, false) => (flag(6)?, flag(7)?),
        };
        Ok(Op::Wgmma(Box::new(Wgmma {
            columns,
            depth,
            a_type,
            b_type,
            half,
            d,
            a,
            b: self.wide(2)?,
            accumulates: self.bit(3)?,
            negated: sign(4)? != sign(5)?,
            a_transposed,
            b_transposed,
        })))
    }
}
