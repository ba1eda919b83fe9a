//! Fifth-generation tensor cores.

use syntax::{Operand, Type};

use super::{Form, Result};
use crate::op::*;

impl Form<'_> {
    pub(super) fn tcgen(&mut self) -> Result<Option<(Op, Gather)>> {
        if self.opcode.base != "tcgen05" {
            return Ok(None);
        }
        let (op, gather) = self.tcgen_operation()?;
        Ok(Some((Op::Tcgen(Box::new(op)), gather)))
    }

    fn pair(&mut self) -> Result<bool> {
        self.opcode
            .takes_one(&[("cta_group::1", false), ("cta_group::2", true)])
            .ok_or_else(|| "no .cta_group".to_owned())
    }

    fn takes_whole_warp(&mut self) -> Result<()> {
        if self.opcode.takes("sync") && self.opcode.takes("aligned") {
            return Ok(());
        }
        Err("not .sync.aligned".to_owned())
    }

    fn tcgen_operation(&mut self) -> Result<(Tcgen, Gather)> {
        const KINDS: [&str; 9] = [
            "alloc",
            "dealloc",
            "relinquish_alloc_permit",
            "mma",
            "ld",
            "st",
            "cp",
            "shift",
            "commit",
        ];
        for wait in [
            ("wait::ld", Tcgen::WaitLoad),
            ("wait::st", Tcgen::WaitStore),
        ] {
            if self.opcode.takes(wait.0) {
                self.takes_whole_warp()?;
                return Ok((wait.1, Gather::Warp));
            }
        }
        let fences = [
            ("fence::before_thread_sync", true),
            ("fence::after_thread_sync", false),
        ];
        if let Some(before) = self.opcode.takes_one(&fences) {
            return Ok((Tcgen::Fence { before }, Gather::None));
        }
        let kind = KINDS
            .into_iter()
            .find(|kind| self.opcode.takes(kind))
            .ok_or("no such opcode")?;
        Ok(match kind {
            "alloc" => {
                let pair = self.pair()?;
                self.takes_whole_warp()?;
                self.space();
                self.ty()?;
                (
                    Tcgen::Alloc {
                        pair,
                        address: self.address(0)?,
                        columns: self.word(1)?,
                    },
                    Gather::Warp,
                )
            }
            "dealloc" => {
                let pair = self.pair()?;
                self.takes_whole_warp()?;
                self.ty()?;
                (
                    Tcgen::Dealloc {
                        pair,
                        base: self.word(0)?,
                        columns: self.word(1)?,
                    },
                    Gather::Warp,
                )
            }
            "relinquish_alloc_permit" => {
                let pair = self.pair()?;
                self.takes_whole_warp()?;
                (Tcgen::Relinquish { pair }, Gather::Warp)
            }
            "mma" => (self.tcgen_mma()?, Gather::None),
            "ld" | "st" => {
                self.takes_whole_warp()?;
                (self.tcgen_transfer(kind == "ld")?, Gather::Warp)
            }
            "cp" => (self.tcgen_copy()?, Gather::None),
            "shift" => {
                let pair = self.pair()?;
                if !self.opcode.takes("down") {
                    return Err("not .down".to_owned());
                }
                self.expect_operands(1..=1)?;
                let address = self.address(0)?;
                (Tcgen::Shift { pair, address }, Gather::None)
            }
            _ => {
                self.pair()?;
                self.opcode.takes("mbarrier::arrive::one");
                self.space();
                let multicast = self.opcode.takes("multicast::cluster");
                self.ty()?;
                let multicast = if multicast { Some(self.word(1)?) } else { None };
                (
                    Tcgen::Commit {
                        barrier: self.address(0)?,
                        multicast,
                    },
                    Gather::None,
                )
            }
        })
    }

    fn tcgen_mma(&mut self) -> Result<Tcgen> {
        let pair = self.pair()?;
        let ws = self.opcode.takes("ws");
        // How operands are kept for the next product changes no value.
        self.opcode.takes_prefixed("collector::");
        let kind = self
            .opcode
            .takes_one(&[
                ("kind::i8", TcgenKind::I8),
                ("kind::f16", TcgenKind::F16),
                ("kind::tf32", TcgenKind::Tf32),
                ("kind::f8f6f4", TcgenKind::F8f6f4),
                ("kind::mxf8f6f4", TcgenKind::Mxf8f6f4),
                ("kind::mxf4nvf4", TcgenKind::Mxf4nvf4),
                ("kind::mxf4", TcgenKind::Mxf4),
            ])
            .ok_or("no kind")?;
        let scaled = matches!(
            kind,
            TcgenKind::Mxf8f6f4 | TcgenKind::Mxf4 | TcgenKind::Mxf4nvf4
        );
        if ws && (pair || scaled) {
            return Err(".ws of a pair of blocks, or with scales".to_owned());
        }
        if scaled != self.opcode.takes("block_scale") {
            return Err("block scales and a kind that do not go together".to_owned());
        }
        let scale_block = match (
            kind,
            self.opcode
                .takes_prefixed("scale_vec::")
                .or_else(|| self.opcode.takes_prefixed("block")),
        ) {
            (TcgenKind::Mxf8f6f4, None | Some("1X" | "32")) => 32,
            (TcgenKind::Mxf4, None | Some("2X" | "32")) => 32,
            (TcgenKind::Mxf4nvf4, Some("2X" | "32")) => 32,
            (TcgenKind::Mxf4nvf4, Some("4X" | "16")) => 16,
            (_, None) if !scaled => 0,
            (_, other) => return Err(format!("scales {other:?}")),
        };
        let mut at = 4;
        let a = match self.operand(1)? {
            Operand::Address { base, offset, .. } => {
                TcgenA::Tensor(self.address_of(base, *offset)?)
            }
            operand => TcgenA::Shared(self.wide_of(operand)?),
        };
        let scales = if scaled {
            at = 6;
            Some((self.address(4)?, self.address(5)?))
        } else {
            None
        };
        let disabled = match self.operand(at)? {
            Operand::Vector(_) => {
                at += 1;
                self.words(at - 1)?
            }
            _ => Box::default(),
        };
        let accumulates = self.bit(at)?;
        if ws && self.operands.len() > at + 1 {
            return Err("a mask of columns that are zero".to_owned());
        }
        let scale_input = if self.operands.len() > at + 1 {
            self.immediate(at + 1)? as u32
        } else {
            0
        };
        if scale_input > 15 || scale_input > 0 && !matches!(kind, TcgenKind::F16 | TcgenKind::Tf32)
        {
            return Err(format!("an input scale of {scale_input}"));
        }
        self.expect_operands(at + 1..=at + 2)?;
        if !matches!(disabled.len(), 0 | 4 | 8) || disabled.len() == if pair { 4 } else { 8 } {
            return Err(format!("a mask of {} words of lanes", disabled.len()));
        }
        Ok(Tcgen::Mma {
            pair,
            ws,
            kind,
            d: self.address(0)?,
            a,
            b: self.wide(2)?,
            descriptor: self.word(3)?,
            scales,
            scale_block,
            disabled,
            accumulates,
            scale_input,
        })
    }

    fn tcgen_transfer(&mut self, loads: bool) -> Result<Tcgen> {
        let shapes = [
            ("32x32b", TcgenShape::S32x32, 1),
            ("16x32bx2", TcgenShape::S16x32Twice { split: 0 }, 1),
            ("16x64b", TcgenShape::S16x64, 1),
            ("16x128b", TcgenShape::S16x128, 2),
            ("16x256b", TcgenShape::S16x256, 4),
        ];
        let (_, mut shape, each) = shapes
            .into_iter()
            .find(|(name, ..)| self.opcode.takes(name))
            .ok_or("no shape")?;
        let repeat: usize = self
            .opcode
            .takes_prefixed("x")
            .and_then(|text| text.parse().ok())
            .ok_or("no number")?;
        if self.ty()? != Type::B32 || !repeat.is_power_of_two() || repeat > 128 {
            return Err("a transfer of another size".to_owned());
        }
        let packed = self
            .opcode
            .takes(if loads { "pack::16b" } else { "unpack::16b" });
        let (address, mut registers) = if loads { (1, 0) } else { (0, 1) };
        if let TcgenShape::S16x32Twice { split } = &mut shape {
            self.expect_operands(3..=3)?;
            *split = self.immediate(if loads { 2 } else { 1 })? as u32;
            registers *= 2;
        } else {
            self.expect_operands(2..=2)?;
        }
        let address = self.address(address)?;
        let count = self.parts(registers)?.len();
        if count != each * repeat {
            return Err(format!("{count} registers for {}", each * repeat));
        }
        Ok(if loads {
            Tcgen::Load {
                shape,
                packed,
                targets: self.word_registers(registers)?,
                address,
            }
        } else {
            Tcgen::Store {
                shape,
                packed,
                values: self.words(registers)?,
                address,
            }
        })
    }

    fn tcgen_copy(&mut self) -> Result<Tcgen> {
        let pair = self.pair()?;
        let shape = self
            .opcode
            .takes_one(&[
                ("128x256b", CopyShape::S128x256),
                ("4x256b", CopyShape::S4x256),
                ("128x128b", CopyShape::S128x128),
                ("32x128b", CopyShape::S32x128),
                ("64x128b", CopyShape::S64x128Pairs02),
            ])
            .ok_or("no shape")?;
        let shape = match shape {
            CopyShape::S64x128Pairs02 => self
                .opcode
                .takes_one(&[
                    ("warpx2::02_13", CopyShape::S64x128Pairs02),
                    ("warpx2::01_23", CopyShape::S64x128Pairs01),
                ])
                .ok_or("no warps")?,
            CopyShape::S32x128 if !self.opcode.takes("warpx4") => {
                return Err("no .warpx4".to_owned())
            }
            other => other,
        };
        let narrow = if self.opcode.takes("b8x16") {
            let formats = [("b6x16_p32", 6), ("b4x16_p64", 4)];
            Some(self.opcode.takes_one(&formats).ok_or("no source format")?)
        } else {
            None
        };
        Ok(Tcgen::Copy {
            pair,
            shape,
            narrow,
            address: self.address(0)?,
            descriptor: self.wide(1)?,
        })
    }
}
