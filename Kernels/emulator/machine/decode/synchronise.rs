//! Warps, barriers and mbarriers.

use syntax::{Operand, Type};

use super::{Form, Result};
use crate::op::*;

impl Form<'_> {
    pub(super) fn synchronise(&mut self) -> Result<Option<(Op, Gather)>> {
        let plain = |op| (op, Gather::None);
        let base = self.opcode.base;
        Ok(Some(match base {
            "bar" | "barrier" => self.barrier()?,
            "mbarrier" => plain(self.mbarrier()?),
            "shfl" => self.shfl()?,
            "vote" => {
                self.opcode.takes("sync");
                let kind = self
                    .opcode
                    .takes_one(&[
                        ("all", Vote::All),
                        ("any", Vote::Any),
                        ("uni", Vote::Uniform),
                        ("ballot", Vote::Ballot),
                    ])
                    .ok_or("no kind of vote")?;
                self.ty()?;
                self.expect_operands(3..=3)?;
                (
                    Op::Vote {
                        kind,
                        target: self.target(0)?,
                        a: self.bit(1)?,
                    },
                    Gather::Members(self.word(2)?),
                )
            }
            "match" => {
                let all = self.opcode.takes("all");
                if !all && !self.opcode.takes("any") {
                    return Err("neither all nor any".to_owned());
                }
                self.opcode.takes("sync");
                let ty = self.ty()?;
                self.expect_operands(3..=3)?;
                let (target, same) = match self.operand(0)? {
                    Operand::Pair(pair) => (self.target_of(&pair.0)?, self.target_of(&pair.1)?),
                    single => (self.target_of(single)?, Target::Nowhere),
                };
                let Target::Word(target) = target else {
                    return Err("a result of another size".to_owned());
                };
                (
                    Op::Match {
                        all,
                        target,
                        same,
                        a: self.value(1, ty)?,
                    },
                    Gather::Members(self.word(2)?),
                )
            }
            "redux" => {
                self.opcode.takes("sync");
                let atomic = self.atomic()?;
                let (absolute, nan) = (self.opcode.takes("abs"), self.opcode.takes("NaN"));
                let ty = self.ty()?;
                let known = match atomic {
                    Atomic::Add => matches!(ty, Type::U32 | Type::S32),
                    Atomic::Min | Atomic::Max => matches!(ty, Type::U32 | Type::S32 | Type::F32),
                    Atomic::And | Atomic::Or | Atomic::Xor => ty == Type::B32,
                    _ => false,
                };
                if !known || (absolute || nan) && ty != Type::F32 {
                    return Err(format!("redux {atomic:?} of {ty:?}"));
                }
                self.expect_operands(3..=3)?;
                let op = Op::Redux {
                    atomic,
                    ty,
                    absolute,
                    nan,
                    target: self.word_target(0)?,
                    a: self.word(1)?,
                };
                (op, Gather::Members(self.word(2)?))
            }
            "elect" => {
                self.opcode.takes("sync");
                self.expect_operands(2..=2)?;
                let Operand::Pair(pair) = self.operand(0)? else {
                    return Err("elect writes a lane and a predicate".to_owned());
                };
                let op = Op::Elect {
                    leader: self.target_of(&pair.0)?,
                    elected: self.target_of(&pair.1)?,
                };
                (op, Gather::Members(self.word(1)?))
            }
            _ => return Ok(None),
        }))
    }

    fn shfl(&mut self) -> Result<(Op, Gather)> {
        if !self.opcode.takes("sync") {
            return Err("shfl without .sync".to_owned());
        }
        let kind = self
            .opcode
            .takes_one(&[
                ("up", Shuffle::Up),
                ("down", Shuffle::Down),
                ("bfly", Shuffle::Butterfly),
                ("idx", Shuffle::Index),
            ])
            .ok_or("no kind of shuffle")?;
        self.ty()?;
        self.expect_operands(5..=5)?;
        let (target, valid) = match self.operand(0)? {
            Operand::Pair(pair) => (self.target_of(&pair.0)?, self.target_of(&pair.1)?),
            single => (self.target_of(single)?, Target::Nowhere),
        };
        let op = Op::Shuffle {
            kind,
            target,
            valid,
            a: self.word(1)?,
            b: self.word(2)?,
            clamp: self.word(3)?,
        };
        Ok((op, Gather::Members(self.word(4)?)))
    }

    fn barrier(&mut self) -> Result<(Op, Gather)> {
        if self.opcode.takes("warp") {
            self.opcode.takes("sync");
            self.expect_operands(1..=1)?;
            return Ok((Op::WarpSync, Gather::Members(self.word(0)?)));
        }
        if self.opcode.takes("cluster") {
            let arrives = self.opcode.takes("arrive");
            if !arrives && !self.opcode.takes("wait") {
                return Err("neither arrive nor wait".to_owned());
            }
            for word in ["acquire", "release"] {
                self.opcode.takes(word);
            }
            let relaxed = self.opcode.takes("relaxed");
            let gather = if self.opcode.takes("aligned") {
                Gather::Warp
            } else {
                Gather::None
            };
            return Ok((
                if arrives {
                    Op::ClusterArrive { relaxed }
                } else {
                    Op::ClusterWait
                },
                gather,
            ));
        }
        self.opcode.takes("cta");
        // bar is another name of barrier.aligned.
        let aligned = self.opcode.takes("aligned") || self.opcode.base == "bar";
        let reduces = self.opcode.takes("red");
        let kind = if reduces {
            let kind = self
                .opcode
                .takes_one(&[
                    ("popc", BarrierKind::Popc),
                    ("and", BarrierKind::And),
                    ("or", BarrierKind::Or),
                ])
                .ok_or("no kind of reduction")?;
            self.ty()?;
            kind
        } else {
            self.opcode
                .takes_one(&[("sync", BarrierKind::Sync), ("arrive", BarrierKind::Arrive)])
                .ok_or("neither sync nor arrive")?
        };
        let first = usize::from(reduces);
        let last = usize::from(reduces);
        self.expect_operands(first + 1 + last..=first + 2 + last)?;
        let counted = self.operands.len() == first + 2 + last;
        Ok((
            Op::Barrier {
                kind,
                id: self.word(first)?,
                count: if counted {
                    Some(self.word(first + 1)?)
                } else {
                    None
                },
                target: if reduces {
                    self.target(0)?
                } else {
                    Target::Nowhere
                },
                a: if reduces {
                    Some(self.bit(self.operands.len() - 1)?)
                } else {
                    None
                },
            },
            if aligned { Gather::Warp } else { Gather::None },
        ))
    }

    fn mbarrier(&mut self) -> Result<Op> {
        const KINDS: [&str; 9] = [
            "init",
            "inval",
            "arrive",
            "arrive_drop",
            "expect_tx",
            "complete_tx",
            "test_wait",
            "try_wait",
            "pending_count",
        ];
        // `arrive.expect_tx` begins with arrive.
        let kind = ["arrive", "arrive_drop"]
            .into_iter()
            .find(|kind| self.opcode.takes(kind));
        let expects_too = kind.is_some() && self.opcode.takes("expect_tx");
        let kind = match kind {
            Some(kind) => kind,
            None => KINDS
                .into_iter()
                .find(|kind| self.opcode.takes(kind))
                .ok_or("no kind of mbarrier")?,
        };
        let relaxed = self.opcode.takes("relaxed");
        self.takes_strength(Scope::Weak);
        let parity = self.opcode.takes("parity");
        let stays = self.opcode.takes("noComplete");
        if self.space() == Space::Global {
            return Err("an mbarrier in global memory".to_owned());
        }
        self.ty()?;
        match kind {
            "init" => Ok(Op::MbarrierInit {
                address: self.address(0)?,
                count: self.word(1)?,
            }),
            "inval" => Ok(Op::MbarrierInvalidate {
                address: self.address(0)?,
            }),
            "pending_count" => Ok(Op::MbarrierPending {
                target: self.word_target(0)?,
                state: self.wide(1)?,
            }),
            "test_wait" | "try_wait" => {
                self.expect_operands(3..=4)?;
                Ok(Op::MbarrierTest {
                    address: self.address(1)?,
                    relaxed,
                    state: if parity { None } else { Some(self.wide(2)?) },
                    parity: if parity { Some(self.word(2)?) } else { None },
                    waits: kind == "try_wait",
                    target: self.bit_target(0)?,
                })
            }
            _ => {
                let at = self
                    .operands
                    .iter()
                    .position(|operand| matches!(operand, Operand::Address { .. }))
                    .ok_or("no address")?;
                let state = if at == 1 {
                    self.target(0)?
                } else {
                    Target::Nowhere
                };
                let amount = if self.operands.len() > at + 1 {
                    Some(self.word(at + 1)?)
                } else {
                    None
                };
                let arrives = kind.starts_with("arrive");
                let counts_bytes = !arrives || expects_too;
                if counts_bytes && amount.is_none() || stays && amount.is_none() {
                    return Err("no count".to_owned());
                }
                Ok(Op::MbarrierArrive {
                    address: self.address(at)?,
                    count: if counts_bytes { None } else { amount },
                    expects: if counts_bytes { amount } else { None },
                    completes: kind == "complete_tx",
                    arrives,
                    drops: kind == "arrive_drop",
                    stays,
                    relaxed,
                    state,
                })
            }
        }
    }
}
