//! What a Hopper must know of an instruction: for who rewrites kernels of sm_100a for it.

use std::collections::BTreeMap;

use syntax::Type;

use crate::number::Rounding;
use crate::op::{Atomic, Op, Tcgen};
use crate::{Error, Module};

/// How an instruction of sm_100a stands to sm_90a.
#[derive(Clone, Debug)]
pub enum Meaning {
    /// The same there.
    Same,
    /// The same there, and somebody may have to wait at it: for other threads, or for asynchronous work.
    Waits,
    /// A number of registers, which Hopper refuses in kernels that call functions.
    Registers,
    Tcgen(Tcgen),
    /// A tensor copy with `.cta_group`; `pair` where the mbarrier may lie in the other block of a pair.
    GroupLoad {
        pair: bool,
        multicast: bool,
    },
    /// Arithmetic on two singles in 64 bits.
    Packed,
    /// The smallest or largest of three singles.
    OfThree,
    /// Sums of singles and halves.
    Mixed,
    /// The smallest or largest single of a warp.
    Redux {
        largest: bool,
        absolute: bool,
        nan: bool,
    },
    /// A load or store of 256 bits.
    Wide,
    /// A conversion to or from elements of fewer than 8 bits, or scales that are powers of two.
    Narrow(Narrow),
}

#[derive(Clone, Copy, Debug)]
pub struct Narrow {
    pub to: Type,
    pub from: Type,
    pub relu: bool,
    /// Towards the larger scale.
    pub up: bool,
}

impl Meaning {
    /// Whether it takes a routine that the kernel calls.
    pub fn is_emulated(&self) -> bool {
        matches!(self, Self::Tcgen(_) | Self::GroupLoad { pair: true, .. })
    }
}

impl Module {
    /// What every instruction that a kernel reaches means, by where it begins in the text.
    ///
    /// # Errors
    ///
    /// Where a kernel has an instruction that the table does not know.
    pub fn meanings(&self) -> Result<BTreeMap<usize, Meaning>, Error> {
        let mut found = BTreeMap::new();
        for kernel in self.kernels() {
            let program = self.program(kernel)?;
            for (pc, decoded) in program.code.iter().enumerate() {
                let meaning = meaning(&decoded.op, program.opcode(pc));
                found.insert(program.start(pc), meaning);
            }
        }
        Ok(found)
    }
}

fn meaning(op: &Op, opcode: &str) -> Meaning {
    let mut words = opcode.split('.');
    let base = words.next().unwrap_or_default();
    let has = |word: &str| opcode.split('.').any(|found| found == word);
    match op {
        Op::Tcgen(tcgen) => Meaning::Tcgen((**tcgen).clone()),
        Op::TensorLoad {
            pair, multicast, ..
        } if *pair || has("cta_group::1") => Meaning::GroupLoad {
            pair: *pair,
            multicast: multicast.is_some(),
        },
        Op::MbarrierTest { .. }
        | Op::Barrier { .. }
        | Op::ClusterArrive { .. }
        | Op::ClusterWait
        | Op::Exit => Meaning::Waits,
        Op::Redux {
            atomic,
            absolute,
            nan,
            ..
        } if has("f32") => Meaning::Redux {
            largest: *atomic == Atomic::Max,
            absolute: *absolute,
            nan: *nan,
        },
        Op::W3(..) if matches!(base, "min" | "max") && has("f32") => Meaning::OfThree,
        Op::W2(..) | Op::W3(..) if has("f32") && (has("f16") || has("bf16")) => Meaning::Mixed,
        Op::Load { ty, targets, .. } if ty.bytes() as usize * targets.len() > 16 => Meaning::Wide,
        Op::Store { ty, values, .. } if ty.bytes() as usize * values.len() > 16 => Meaning::Wide,
        Op::Convert { convert, .. } if is_narrow(convert.to) || is_narrow(convert.from) => {
            Meaning::Narrow(Narrow {
                to: convert.to,
                from: convert.from,
                relu: convert.relu,
                up: convert.rounding == Some(Rounding::Up),
            })
        }
        _ if base == "setmaxnreg" => Meaning::Registers,
        _ if has("f32x2") => Meaning::Packed,
        _ => Meaning::Same,
    }
}

fn is_narrow(ty: Type) -> bool {
    matches!(
        ty,
        Type::E2m1x2 | Type::E2m3x2 | Type::E3m2x2 | Type::Ue8m0x2
    )
}
