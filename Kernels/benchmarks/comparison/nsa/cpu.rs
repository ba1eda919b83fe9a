//! CPU contenders for the branches and their sum.

use contender::{ContenderError, Contenders};
use host::Element;
use nsa_cpu::{plain, Branch, Gated, Reach};
use shared::cpu::{self, Style, Work};
use shared::element_types;
use shared::memory::{In, Memory};
use workloads::{NsaOp, NsaProblem};

pub fn contenders() -> Contenders<NsaProblem> {
    cpu::contenders(|_| None, element_types!(bind))
}

fn bind<T: Element>(problem: &NsaProblem, memory: &Memory, style: Style) -> Work {
    match problem.op {
        NsaOp::Gated => bind_gated::<T>(problem, memory, style),
        _ => bind_branch::<T>(problem, memory, style),
    }
}

fn bind_branch<T: Element>(problem: &NsaProblem, memory: &Memory, style: Style) -> Work {
    let (op, shape, scale) = (problem.op, problem.shape, problem.scale);
    let queries = memory.read("queries")?;
    let (keys, values) = (memory.read("keys")?, memory.read("values")?);
    let blocks = match op {
        NsaOp::Selected => Some(memory.read("blocks")?),
        _ => None,
    };
    let (mut out, mut lse) = (memory.write("out")?, memory.write("lse")?);
    let attend = match style {
        Style::Threaded => nsa_cpu::attend::<T>,
        Style::Plain => plain::attend::<T>,
    };
    Ok(Box::new(move || {
        let reach = match &blocks {
            Some(blocks) => Reach::Selected {
                blocks,
                block: shape.block,
                selected: shape.selected,
            },
            None if op == NsaOp::Compressed => Reach::Compressed { block: shape.block },
            None => Reach::Window(shape.window),
        };
        let input = Branch {
            queries: &queries,
            keys: &keys,
            values: &values,
            reach,
            sequence: shape.sequence,
            heads: shape.heads,
            groups: shape.groups,
            dim: shape.dim,
            scale,
        };
        attend(&input, &mut out, &mut lse);
    }))
}

fn bind_gated<T: Element>(problem: &NsaProblem, memory: &Memory, style: Style) -> Work {
    let read = |names: [&str; 3]| -> Result<Vec<In<T>>, ContenderError> {
        names.into_iter().map(|name| memory.read(name)).collect()
    };
    let outputs = read(["compressed", "selected", "sliding"])?;
    let gates = read(["gate_compressed", "gate_selected", "gate_sliding"])?;
    let (dim, mut out) = (problem.shape.dim, memory.write("out")?);
    let gated_sum = match style {
        Style::Threaded => nsa_cpu::gated_sum::<T>,
        Style::Plain => plain::gated_sum::<T>,
    };
    Ok(Box::new(move || {
        let input = Gated {
            outputs: [&outputs[0], &outputs[1], &outputs[2]],
            gates: [&gates[0], &gates[1], &gates[2]],
            dim,
        };
        gated_sum(&input, &mut out);
    }))
}
