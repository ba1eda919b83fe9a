//! Asynchronous copies: by threads, in bulk, and of tensors.

use syntax::{Operand, Type};

use super::{Form, Result};
use crate::op::*;
use crate::tensor_map;

impl Form<'_> {
    pub(super) fn copy(&mut self) -> Result<Option<Op>> {
        let base = self.opcode.base;
        Ok(Some(match base {
            // `data` has taken the word that tells this one apart.
            "st" => self.store_async()?,
            "cp" if self.opcode.takes("reduce") => self.reduce()?,
            "cp" if self.opcode.takes("async") => self.asynchronous()?,
            _ => return Ok(None),
        }))
    }

    /// What kernels do to tensor maps themselves.
    pub(super) fn tensor_map(&mut self) -> Result<Option<(Op, Gather)>> {
        if self.opcode.base != "tensormap" {
            return Ok(None);
        }
        if self.opcode.takes("cp_fenceproxy") {
            for word in ["global", "shared::cta", "tensormap::generic", "release"] {
                if !self.opcode.takes(word) {
                    return Err(format!("a tensor map published without .{word}"));
                }
            }
            self.takes_scope().ok_or("no scope")?;
            if !self.opcode.takes("sync") || !self.opcode.takes("aligned") {
                return Err("not .sync.aligned".to_owned());
            }
            self.expect_operands(3..=3)?;
            if self.immediate(2)? != tensor_map::BYTES as u64 {
                return Err("a tensor map of another size than 128 bytes".to_owned());
            }
            let (to, from) = (self.address(0)?, self.address(1)?);
            return Ok(Some((Op::PublishMap { to, from }, Gather::Warp)));
        }
        if !self.opcode.takes("replace") || !self.opcode.takes("tile") {
            return Err("neither replace.tile nor cp_fenceproxy".to_owned());
        }
        let field = self.opcode.takes_one(&MapField::NAMES).ok_or("no field")?;
        let space = self.space();
        let wanted = if field.is_wide() {
            Type::B64
        } else {
            Type::B32
        };
        if !self.opcode.takes("b1024") || self.ty()? != wanted {
            return Err(format!("not .b1024 and {wanted:?}"));
        }
        let last = 1 + usize::from(field.has_ordinal());
        self.expect_operands(last + 1..=last + 1)?;
        let ordinal = if field.has_ordinal() {
            self.immediate(1)? as u32
        } else {
            0
        };
        let op = Op::ReplaceField {
            field,
            ordinal,
            space,
            address: self.address(0)?,
            value: self.value(last, wanted)?,
        };
        Ok(Some((op, Gather::None)))
    }

    fn store_async(&mut self) -> Result<Op> {
        self.takes_strength(Scope::Weak);
        self.opcode.takes("shared::cluster");
        if !self.opcode.takes("mbarrier::complete_tx::bytes") {
            return Err("st.async without an mbarrier".to_owned());
        }
        self.opcode.takes_one(&[("v2", ()), ("v4", ())]);
        let ty = self.ty()?;
        self.expect_operands(3..=3)?;
        let values = self
            .parts(1)?
            .iter()
            .map(|part| self.value_of(part, ty))
            .collect::<Result<_>>()?;
        Ok(Op::StoreAsync {
            ty,
            address: self.address(0)?,
            values,
            barrier: self.address(2)?,
        })
    }

    fn asynchronous(&mut self) -> Result<Op> {
        if self.opcode.takes("bulk") {
            return self.bulk();
        }
        if self.opcode.takes("commit_group") {
            return Ok(Op::CopyCommit);
        }
        if self.opcode.takes("wait_group") {
            return Ok(Op::CopyWait(self.immediate(0)? as u32));
        }
        if self.opcode.takes("wait_all") {
            return Ok(Op::CopyWaitAll);
        }
        if self.opcode.takes("mbarrier") {
            self.opcode.takes("arrive");
            let counted = !self.opcode.takes("noinc");
            self.space();
            self.ty()?;
            return Ok(Op::CopyArrive {
                address: self.address(0)?,
                counted,
            });
        }
        let past_l1 = self.opcode.takes("cg");
        let hinted = self.opcode.takes_cache_hints();
        if !(self.opcode.takes("shared") || self.opcode.takes("shared::cta"))
            || !self.opcode.takes("global")
        {
            return Err("a copy between other spaces".to_owned());
        }
        self.expect_operands(3..=4 + usize::from(hinted))?;
        let bytes = self.immediate(2)? as u32;
        if !matches!(bytes, 4 | 8 | 16) || past_l1 && bytes != 16 {
            return Err(format!("a copy of {bytes} bytes"));
        }
        let (mut source_bytes, mut ignore) = (None, None);
        if let (Some(operand), false) = (self.operands.get(3), hinted && self.operands.len() == 4) {
            match self.value_of(operand, Type::U32)? {
                Value::Bit(bit) => ignore = Some(bit),
                _ => source_bytes = Some(self.word_of(operand)?),
            }
        }
        Ok(Op::CopyAsync {
            bytes,
            shared: self.address(0)?,
            global: self.address(1)?,
            source_bytes,
            ignore,
        })
    }

    fn bulk(&mut self) -> Result<Op> {
        if self.opcode.takes("commit_group") {
            return Ok(Op::BulkCommit);
        }
        if self.opcode.takes("wait_group") {
            return Ok(Op::BulkWait {
                groups: self.immediate(0)? as u32,
                read: self.opcode.takes("read"),
            });
        }
        if self.opcode.takes("prefetch") {
            for word in [
                "L2", "global", "tensor", "tile", "1d", "2d", "3d", "4d", "5d",
            ] {
                self.opcode.takes(word);
            }
            self.opcode.takes_cache_hints();
            return Ok(Op::Nothing);
        }
        if self.opcode.takes("tensor") {
            return self.tensor(None);
        }
        self.opcode.takes_cache_hints();
        let multicast = self.opcode.takes("multicast::cluster");
        let to_global = self.opcode.takes("bulk_group");
        let by_barrier = self.opcode.takes("mbarrier::complete_tx::bytes");
        let words =
            ["shared::cluster", "shared::cta", "global"].map(|word| self.opcode.takes(word));
        match (to_global, by_barrier, words) {
            (true, false, [false, true, true]) => Ok(Op::BulkStore {
                global: self.address(0)?,
                shared: self.address(1)?,
                bytes: self.word(2)?,
            }),
            (false, true, [true, false, true] | [false, true, true]) => Ok(Op::BulkLoad {
                shared: self.address(0)?,
                global: self.address(1)?,
                bytes: self.word(2)?,
                barrier: self.address(3)?,
                multicast: if multicast { Some(self.word(4)?) } else { None },
            }),
            (false, true, [true, true, false]) if !multicast => Ok(Op::BulkShare {
                to: self.address(0)?,
                from: self.address(1)?,
                bytes: self.word(2)?,
                barrier: self.address(3)?,
            }),
            _ => Err("a bulk copy between other spaces".to_owned()),
        }
    }

    fn reduce(&mut self) -> Result<Op> {
        if !self.opcode.takes("async") || !self.opcode.takes("bulk") {
            return Err("a reduction that is not in bulk".to_owned());
        }
        if self.opcode.takes("tensor") {
            let atomic = self.atomic()?;
            return self.tensor(Some(atomic));
        }
        self.opcode.takes_cache_hints();
        for word in ["global", "shared::cta", "bulk_group"] {
            if !self.opcode.takes(word) {
                return Err(format!("a bulk reduction without .{word}"));
            }
        }
        let atomic = self.atomic()?;
        self.opcode.takes("noftz");
        let ty = self.ty()?;
        Self::check_atomic(atomic, ty)?;
        Ok(Op::BulkReduce {
            atomic,
            ty,
            global: self.address(0)?,
            shared: self.address(1)?,
            bytes: self.word(2)?,
        })
    }

    fn tensor(&mut self, reduce: Option<Atomic>) -> Result<Op> {
        let rank = self
            .opcode
            .takes_one(&[("1d", 1), ("2d", 2), ("3d", 3), ("4d", 4), ("5d", 5)])
            .ok_or("no number of dimensions")?;
        self.opcode.takes("tile");
        self.opcode.takes_cache_hints();
        let pair = self.opcode.takes("cta_group::2");
        self.opcode.takes("cta_group::1");
        let multicast = self.opcode.takes("multicast::cluster");
        let loads = self.opcode.takes("mbarrier::complete_tx::bytes");
        let words =
            ["shared::cluster", "shared::cta", "global"].map(|word| self.opcode.takes(word));
        let map_at = usize::from(loads);
        let Operand::Address { base, offset, more } = self.operand(map_at)? else {
            return Err("no tensor map".to_owned());
        };
        let map = self.address_of(base, *offset)?;
        let [Operand::Vector(list)] = more.as_slice() else {
            return Err("no coordinates".to_owned());
        };
        if list.len() != rank {
            return Err(format!("{} coordinates for {rank} dimensions", list.len()));
        }
        let coordinates: Box<[Word]> = list
            .iter()
            .map(|part| self.word_of(part))
            .collect::<Result<_>>()?;
        if loads && words[2] && words[0] != words[1] && reduce.is_none() {
            return Ok(Op::TensorLoad {
                shared: self.address(0)?,
                map,
                coordinates,
                barrier: self.address(2)?,
                multicast: if multicast { Some(self.word(3)?) } else { None },
                pair,
            });
        }
        if self.opcode.takes("bulk_group") && words == [false, true, true] && !multicast && !pair {
            return Ok(Op::TensorStore {
                map,
                coordinates,
                shared: self.address(1)?,
                reduce,
            });
        }
        Err("a tensor copy between other spaces".to_owned())
    }
}
