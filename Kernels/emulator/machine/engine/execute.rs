//! One instruction for the active lanes of a warp.

use syntax::{Axis, Special};

use super::atomic::combine;
use super::ordering::Touch;
use super::shared::{locate, Location, LOCAL_WINDOW, SHARED_WINDOW};
use super::{Engine, Flow, Run};
use crate::error::Trap;
use crate::op::*;
use crate::warp::{lanes, Warp};

fn join(logic: Logic, a: u32, b: u32) -> u32 {
    match logic {
        Logic::And => a & b,
        Logic::Or => a | b,
        Logic::Xor => a ^ b,
    }
}

impl Engine<'_> {
    pub(super) fn execute(&mut self, warp: &mut Warp, op: &Op, mask: u32, pc: usize) -> Run<Flow> {
        match op {
            Op::Nothing => {}
            Op::W1(f, d, a) => {
                let out = f(&self.words(warp, *a));
                warp.set_words(*d, mask, &out);
            }
            Op::W2(f, d, a, b) => {
                let out = f(&self.words(warp, *a), &self.words(warp, *b));
                warp.set_words(*d, mask, &out);
            }
            Op::W3(f, d, a, b, c) => {
                let out = f(
                    &self.words(warp, *a),
                    &self.words(warp, *b),
                    &self.words(warp, *c),
                );
                warp.set_words(*d, mask, &out);
            }
            Op::W4(f, d, sources) => {
                let [a, b, c, e] = sources.map(|word| self.words(warp, word));
                warp.set_words(*d, mask, &f(&a, &b, &c, &e));
            }
            Op::D1(f, d, a) => {
                let out = f(&self.wides(warp, *a));
                warp.set_wides(*d, mask, &out);
            }
            Op::D2(f, d, a, b) => {
                let out = f(&self.wides(warp, *a), &self.wides(warp, *b));
                warp.set_wides(*d, mask, &out);
            }
            Op::D3(f, d, a, b, c) => {
                let out = f(
                    &self.wides(warp, *a),
                    &self.wides(warp, *b),
                    &self.wides(warp, *c),
                );
                warp.set_wides(*d, mask, &out);
            }
            Op::Dwd(f, d, a, b) => {
                let out = f(&self.wides(warp, *a), &self.words(warp, *b));
                warp.set_wides(*d, mask, &out);
            }
            Op::Wwd(f, d, a, b) => {
                let out = f(&self.words(warp, *a), &self.words(warp, *b));
                warp.set_wides(*d, mask, &out);
            }
            Op::Wwdd(f, d, a, b, c) => {
                let out = f(
                    &self.words(warp, *a),
                    &self.words(warp, *b),
                    &self.wides(warp, *c),
                );
                warp.set_wides(*d, mask, &out);
            }
            Op::Dwwd(f, d, a, b, c) => {
                let out = f(
                    &self.wides(warp, *a),
                    &self.words(warp, *b),
                    &self.words(warp, *c),
                );
                warp.set_wides(*d, mask, &out);
            }
            Op::Ddwwd(f, d, a, b, c, e) => {
                let out = f(
                    &self.wides(warp, *a),
                    &self.wides(warp, *b),
                    &self.words(warp, *c),
                    &self.words(warp, *e),
                );
                warp.set_wides(*d, mask, &out);
            }
            Op::DW(f, d, a) => {
                let out = f(&self.wides(warp, *a));
                warp.set_words(*d, mask, &out);
            }
            Op::WD(f, d, a) => {
                let out = f(&self.words(warp, *a));
                warp.set_wides(*d, mask, &out);
            }
            Op::Carry {
                subtracts,
                takes,
                gives,
                wide,
                target,
                a,
                b,
            } => {
                self.carry(
                    warp,
                    mask,
                    (*subtracts, *takes, *gives, *wide),
                    (*target, *a, *b),
                );
            }
            Op::Lop3 {
                table,
                target,
                a,
                b,
                c,
            } => {
                let (a, b, c) = (
                    self.words(warp, *a),
                    self.words(warp, *b),
                    self.words(warp, *c),
                );
                let out = std::array::from_fn(|lane| {
                    (0..8)
                        .filter(|row| table >> row & 1 == 1)
                        .fold(0, |result, row| {
                            let term =
                                |bit: u32, value: u32| if row & bit != 0 { value } else { !value };
                            result | term(4, a[lane]) & term(2, b[lane]) & term(1, c[lane])
                        })
                });
                warp.set_words(*target, mask, &out);
            }
            Op::MoveWord(d, a) => {
                let out = self.words(warp, *a);
                warp.set_words(*d, mask, &out);
            }
            Op::MoveWide(d, a) => {
                let out = self.wides(warp, *a);
                warp.set_wides(*d, mask, &out);
            }
            Op::MoveBit(d, a) => {
                let bits = warp.bit(*a);
                warp.set_bits(*d, mask, bits);
            }
            Op::Special(target, special) => {
                for lane in lanes(mask) {
                    let value = self.special(warp.index * 32 + lane, *special)?;
                    warp.set_lane(*target, lane, value);
                }
            }
            Op::Pack {
                target,
                parts,
                bits,
            } => {
                let mut out = [0; LANES];
                let ones = u64::MAX >> (64 - bits);
                for (at, part) in parts.iter().enumerate() {
                    let values = self.values(warp, *part);
                    for lane in 0..LANES {
                        out[lane] |= (values[lane] & ones) << (bits * at as u32);
                    }
                }
                warp.set_all(*target, mask, |lane| out[lane as usize]);
            }
            Op::Unpack {
                parts,
                source,
                bits,
            } => {
                let values = self.values(warp, *source);
                let ones = u64::MAX >> (64 - bits);
                for (at, part) in parts.iter().enumerate() {
                    warp.set_all(*part, mask, |lane| {
                        values[lane as usize] >> (bits * at as u32) & ones
                    });
                }
            }
            Op::CompareW {
                compare,
                targets,
                a,
                b,
                join: joined,
            } => {
                let result = compare(&self.words(warp, *a), &self.words(warp, *b));
                Self::set_compared(warp, mask, result, *targets, *joined);
            }
            Op::CompareD {
                compare,
                targets,
                a,
                b,
                join: joined,
            } => {
                let result = compare(&self.wides(warp, *a), &self.wides(warp, *b));
                Self::set_compared(warp, mask, result, *targets, *joined);
            }
            Op::SetW {
                compare,
                target,
                a,
                b,
                yes,
            } => {
                let result = compare(&self.words(warp, *a), &self.words(warp, *b));
                let out =
                    std::array::from_fn(|lane| if result >> lane & 1 == 1 { *yes } else { 0 });
                warp.set_words(*target, mask, &out);
            }
            Op::BitLogic {
                logic,
                target,
                a,
                b,
            } => {
                let result = join(*logic, warp.bit(*a), warp.bit(*b));
                warp.set_bits(*target, mask, result);
            }
            Op::SelectW(d, a, b, bit) => {
                let (a, b, bits) = (self.words(warp, *a), self.words(warp, *b), warp.bit(*bit));
                let out = std::array::from_fn(|lane| {
                    if bits >> lane & 1 == 1 {
                        a[lane]
                    } else {
                        b[lane]
                    }
                });
                warp.set_words(*d, mask, &out);
            }
            Op::SelectD(d, a, b, bit) => {
                let (a, b, bits) = (self.wides(warp, *a), self.wides(warp, *b), warp.bit(*bit));
                let out = std::array::from_fn(|lane| {
                    if bits >> lane & 1 == 1 {
                        a[lane]
                    } else {
                        b[lane]
                    }
                });
                warp.set_wides(*d, mask, &out);
            }
            Op::Convert {
                convert,
                target,
                a,
                b,
            } => {
                let a = self.values(warp, *a);
                let b = b.map_or([0; LANES], |b| self.values(warp, b));
                warp.set_all(*target, mask, |lane| {
                    convert.apply(a[lane as usize], b[lane as usize])
                });
            }
            Op::ToGeneric {
                space,
                target,
                source,
            } => {
                let window = match space {
                    Space::Shared => SHARED_WINDOW,
                    Space::Local => LOCAL_WINDOW,
                    _ => 0,
                };
                let values = self.values(warp, *source);
                warp.set_all(*target, mask, |lane| {
                    let value = values[lane as usize];
                    if window == 0 {
                        value
                    } else {
                        window | value & 0xffff_ffff
                    }
                });
            }
            Op::FromGeneric {
                space,
                target,
                source,
            } => {
                let keeps = if matches!(space, Space::Shared | Space::Local) {
                    0xffff_ffff
                } else {
                    u64::MAX
                };
                let values = self.values(warp, *source);
                warp.set_all(*target, mask, |lane| values[lane as usize] & keeps);
            }
            Op::IsSpace {
                space,
                target,
                source,
            } => {
                let values = self.values(warp, *source);
                for lane in lanes(mask) {
                    let found = matches!(
                        (locate(Space::Generic, values[lane as usize]), space),
                        (Location::Global(_), Space::Global)
                            | (Location::Shared(_), Space::Shared)
                            | (Location::Local(_), Space::Local)
                    );
                    warp.set_bits(*target, 1 << lane, if found { u32::MAX } else { 0 });
                }
            }
            Op::LoadParameter {
                ty,
                targets,
                offset,
            } => {
                let bytes = ty.bytes() as usize;
                let parameters = &self.launch.parameters;
                for (at, target) in targets.iter().enumerate() {
                    let start = *offset as usize + at * bytes;
                    let Some(part) = parameters.get(start..start + bytes) else {
                        return Err(Trap::new(format!(
                            "a parameter at {start} of {} bytes",
                            parameters.len()
                        )));
                    };
                    let mut value = [0; 8];
                    value[..bytes].copy_from_slice(part);
                    let mut value = u64::from_le_bytes(value);
                    if ty.is_signed() {
                        let shift = 64 - 8 * bytes as u32;
                        value = ((value << shift) as i64 >> shift) as u64;
                    }
                    warp.set_all(*target, mask, |_| value);
                }
            }
            Op::Load {
                ty,
                space,
                strength,
                targets,
                address,
            } => self.load(warp, mask, (*ty, *space, *strength, targets, *address))?,
            Op::Store {
                ty,
                space,
                strength,
                values,
                address,
            } => self.store(warp, mask, (*ty, *space, *strength, values, *address))?,
            Op::CopyLocal { from, to, bytes } => self.copy_local(warp, mask, *from, *to, *bytes),
            Op::Atomic {
                atomic,
                ty,
                space,
                strength,
                target,
                address,
                value,
                swap,
            } => {
                let addresses = self.addresses(warp, *address);
                let values = self.values(warp, *value);
                let swaps = swap.map_or([0; LANES], |swap| self.values(warp, swap));
                for lane in lanes(mask) {
                    let (value, swap) = (values[lane as usize], swaps[lane as usize]);
                    let change = |old| combine(*atomic, *ty, old, value, swap);
                    let (who, address) = ((warp.index, lane), addresses[lane as usize]);
                    let how = (*space, *strength, Touch::Both);
                    let old = self.update(who, how, address, ty.bytes(), change)?;
                    warp.set_lane(*target, lane, old);
                }
            }
            Op::ReduceVector {
                atomic,
                ty,
                space,
                strength,
                address,
                values,
            } => {
                let addresses = self.addresses(warp, *address);
                let total = ty.bytes() * values.len() as u32;
                for (at, value) in values.iter().enumerate() {
                    let data = self.values(warp, *value);
                    for lane in lanes(mask) {
                        let address = addresses[lane as usize];
                        Self::check_alignment(lane, address, total)?;
                        let change = |old| combine(*atomic, *ty, old, data[lane as usize], 0);
                        self.update(
                            (warp.index, lane),
                            (*space, *strength, Touch::Write),
                            address + u64::from(ty.bytes()) * at as u64,
                            ty.bytes(),
                            change,
                        )?;
                    }
                }
            }
            Op::Branch(target) => return Ok(Flow::Jump(*target)),
            Op::BranchTable { targets, index } => {
                let index = self.words(warp, *index);
                let mut parts: Vec<(u32, usize)> = Vec::new();
                for lane in lanes(mask) {
                    let Some(target) = targets.get(index[lane as usize] as usize) else {
                        return Err(Trap::in_lane(
                            lane,
                            format!("branch {} of {}", index[lane as usize], targets.len()),
                        ));
                    };
                    match parts.iter_mut().find(|(_, pc)| pc == target) {
                        Some((mask, _)) => *mask |= 1 << lane,
                        None => parts.push((1 << lane, *target)),
                    }
                }
                return Ok(Flow::Split(parts));
            }
            Op::Exit => return Ok(Flow::Exit),
            Op::Trap(message) => return Err(Trap::in_lane(mask.trailing_zeros(), message.clone())),
            Op::MapShared {
                target,
                source,
                rank,
                generic,
            } => {
                let (values, ranks) = (self.values(warp, *source), self.words(warp, *rank));
                for lane in lanes(mask) {
                    let rank = ranks[lane as usize];
                    if rank as usize >= self.blocks.len() {
                        return Err(Trap::in_lane(
                            lane,
                            format!("block {rank} of a cluster of {}", self.blocks.len()),
                        ));
                    }
                    let address = values[lane as usize] & 0xff_ffff | u64::from(rank) << 24;
                    warp.set_lane(
                        *target,
                        lane,
                        if *generic {
                            SHARED_WINDOW | address
                        } else {
                            address
                        },
                    );
                }
            }
            Op::GetRank { target, source } => {
                let values = self.values(warp, *source);
                warp.set_all(Target::Word(*target), mask, |lane| {
                    values[lane as usize] >> 24 & 0xff
                });
            }
            Op::MoveMatrix { .. }
            | Op::LoadMatrix { .. }
            | Op::StoreMatrix { .. }
            | Op::Mma { .. }
            | Op::MmaInteger { .. }
            | Op::Wgmma(_)
            | Op::WgmmaFence
            | Op::WgmmaCommit
            | Op::WgmmaWait(_) => self.matrix(warp, op, mask, pc)?,
            Op::ReplaceField {
                field,
                ordinal,
                space,
                address,
                value,
            } => {
                let what = (*space, *address, *value);
                self.replace_field(warp, mask, (*field, *ordinal), what)?;
            }
            Op::PublishMap { to, from } => self.publish_map(warp, mask, (*to, *from))?,
            Op::Tcgen(op) => return self.tcgen(warp, op, mask, pc),
            Op::CopyAsync { .. }
            | Op::CopyCommit
            | Op::CopyWait(_)
            | Op::CopyWaitAll
            | Op::CopyArrive { .. }
            | Op::BulkLoad { .. }
            | Op::BulkStore { .. }
            | Op::BulkReduce { .. }
            | Op::BulkShare { .. }
            | Op::BulkCommit
            | Op::BulkWait { .. }
            | Op::TensorLoad { .. }
            | Op::TensorStore { .. }
            | Op::StoreAsync { .. } => {
                self.asynchronous(warp, op, mask, pc)?;
            }
            _ => return self.synchronise(warp, op, mask, pc),
        }
        Ok(Flow::Next)
    }

    fn set_compared(
        warp: &mut Warp,
        mask: u32,
        result: u32,
        targets: [Target; 2],
        joined: Option<(Logic, Bit)>,
    ) {
        let results = match joined {
            None => [result, !result],
            Some((logic, bit)) => {
                let bits = warp.bit(bit);
                [join(logic, result, bits), join(logic, !result, bits)]
            }
        };
        for (target, result) in targets.into_iter().zip(results) {
            if let Target::Bit(number) = target {
                warp.set_bits(number, mask, result);
            }
        }
    }

    fn carry(
        &self,
        warp: &mut Warp,
        mask: u32,
        how: (bool, bool, bool, bool),
        what: (Target, Value, Value),
    ) {
        let (subtracts, takes, gives, wide) = how;
        let (target, a, b) = what;
        let (a, b) = (self.values(warp, a), self.values(warp, b));
        let bits = if wide { 64 } else { 32 };
        for lane in lanes(mask) {
            let carried = i128::from(takes && warp.carry >> lane & 1 == 1);
            let (a, b) = (i128::from(a[lane as usize]), i128::from(b[lane as usize]));
            let result = if subtracts {
                a - b - carried
            } else {
                a + b + carried
            };
            warp.set_lane(target, lane, result as u64 & u64::MAX >> (64 - bits));
            if gives {
                let flag = u32::from(result >> bits != 0) << lane;
                warp.carry = warp.carry & !(1 << lane) | flag;
            }
        }
    }

    fn special(&self, thread: u32, special: Special) -> Run<u64> {
        let launch = self.launch;
        let block = &self.blocks[self.block];
        let at = |axis: Axis| axis as usize;
        let lane = thread % 32;
        let value = match special {
            Special::Tid(Axis::X) => thread % launch.block[0],
            Special::Tid(Axis::Y) => thread / launch.block[0] % launch.block[1],
            Special::Tid(Axis::Z) => thread / launch.block[0] / launch.block[1],
            Special::Ntid(axis) => launch.block[at(axis)],
            Special::Ctaid(axis) => block.id[at(axis)],
            Special::Nctaid(axis) => launch.grid[at(axis)],
            Special::ClusterCtaid(axis) => block.id[at(axis)] % launch.cluster[at(axis)],
            Special::ClusterNctaid(axis) => launch.cluster[at(axis)],
            Special::Clusterid(axis) => block.id[at(axis)] / launch.cluster[at(axis)],
            Special::Nclusterid(axis) => launch.grid[at(axis)] / launch.cluster[at(axis)],
            Special::ClusterCtarank => self.block as u32,
            Special::ClusterNctarank => self.blocks.len() as u32,
            Special::IsExplicitCluster => u32::from(self.blocks.len() > 1),
            Special::Laneid => lane,
            Special::Warpid => thread / 32,
            Special::Nwarpid => 64,
            Special::Smid => (block.id[0] / launch.cluster[0]) % launch.multiprocessors,
            Special::Nsmid => launch.multiprocessors,
            Special::Gridid => 1,
            Special::LanemaskEq => 1 << lane,
            Special::LanemaskLt => (1 << lane) - 1,
            Special::LanemaskLe => u32::MAX >> (31 - lane),
            Special::LanemaskGt => !(u32::MAX >> (31 - lane)),
            Special::LanemaskGe => !((1 << lane) - 1),
            Special::DynamicSmemSize => launch.dynamic_shared_bytes,
            Special::TotalSmemSize | Special::AggrSmemSize => block.shared.len() as u32,
            Special::Clock => self.executed as u32,
            Special::ClockHi => (self.executed >> 32) as u32,
            Special::Clock64 | Special::Globaltimer => return Ok(self.executed),
            // Cooperative launches find the grid's barrier by them.
            Special::Environment(number) => {
                return Err(Trap::in_lane(
                    lane,
                    format!("%envreg{number} is the driver's, and nothing here sets it"),
                ))
            }
        };
        Ok(value.into())
    }
}
