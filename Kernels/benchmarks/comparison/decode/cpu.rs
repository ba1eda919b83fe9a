//! CPU contenders.

use contender::{ContenderError, Contenders};
use decode_cpu::{plain, Decode, E4m3, Element};
use shared::cpu::{self, Style, Work};
use shared::element_types;
use shared::memory::Memory;
use workloads::{DecodeProblem, KvType};

pub fn contenders() -> Contenders<DecodeProblem> {
    cpu::contenders(|_| None, element_types!(bind))
}

fn bind<T: Element>(problem: &DecodeProblem, memory: &Memory, style: Style) -> Work {
    match problem.shape.kv_type {
        KvType::Same => bind_over::<T, T>(problem, memory, style),
        KvType::Fp8 => bind_over::<T, E4m3>(problem, memory, style),
    }
}

fn bind_over<T: Element, C: Element>(
    problem: &DecodeProblem,
    memory: &Memory,
    style: Style,
) -> Work {
    problem.table.validate().map_err(ContenderError::new)?;
    let (problem, q) = (problem.clone(), memory.read("q")?);
    let (keys, values) = (memory.read("k_pages")?, memory.read("v_pages")?);
    let mut out = memory.write("out")?;
    let decode = match style {
        Style::Threaded => decode_cpu::decode::<T, C>,
        Style::Plain => plain::decode::<T, C>,
    };
    Ok(Box::new(move || {
        let (shape, table) = (&problem.shape, &problem.table);
        let task = Decode {
            q: &q,
            keys: &keys,
            values: &values,
            batch: shape.batch(),
            q_len: shape.q_len,
            heads: shape.heads,
            kv_heads: shape.kv_heads,
            dim: shape.head_dim,
            scale: problem.scale * problem.k_scale,
            value_scale: problem.v_scale,
            visible: &|sequence, query| table.visible(sequence, shape.q_len, query),
            row: &|sequence, token, head| shape.cache_row(table, sequence, token, head),
        };
        decode(&task, &mut out);
    }))
}
