//! Which registers that `tcgen05.ld` loads each instruction names.

use std::collections::HashMap;

use syntax::Operand;

use crate::decode::Slot;
use crate::flatten::Step;
use crate::op::{Decoded, Op, Tcgen};

/// For every instruction the loads whose registers it reads or replaces; empty where a kernel has no loads.
pub fn loads_named(code: &[Decoded], steps: &[Step], slots: &[Slot]) -> Vec<Box<[usize]>> {
    let mut loads: HashMap<u32, Vec<usize>> = HashMap::new();
    for (pc, decoded) in code.iter().enumerate() {
        let Op::Tcgen(op) = &decoded.op else { continue };
        let Tcgen::Load { targets, .. } = &**op else {
            continue;
        };
        for target in targets {
            loads.entry(*target).or_default().push(pc);
        }
    }
    if loads.is_empty() {
        return Vec::new();
    }
    let of_step = |step: &Step| {
        let mut found = Vec::new();
        for operand in &step.instruction.operands {
            visit(operand, &mut |register| {
                if let Slot::Word(number) = slots[register as usize] {
                    found.extend(loads.get(&number).into_iter().flatten());
                }
            });
        }
        found.sort_unstable();
        found.dedup();
        found.into_boxed_slice()
    };
    steps.iter().map(of_step).collect()
}

fn visit(operand: &Operand, found: &mut impl FnMut(u32)) {
    match operand {
        Operand::Register(number) | Operand::NotRegister(number) => found(*number),
        Operand::Vector(list) => list.iter().for_each(|part| visit(part, found)),
        Operand::Address { base, more, .. } => {
            visit(base, found);
            more.iter().for_each(|part| visit(part, found));
        }
        Operand::Pair(pair) => {
            visit(&pair.0, found);
            visit(&pair.1, found);
        }
        _ => {}
    }
}
