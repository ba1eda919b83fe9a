//! CPU contenders.

use contender::{ContenderError, Contenders};
use decode_cpu::{plain, E4m3, Element, Latent};
use shared::cpu::{self, Style, Work};
use shared::element_types;
use shared::memory::Memory;
use workloads::{KvType, MlaDecodeProblem};

pub fn contenders() -> Contenders<MlaDecodeProblem> {
    cpu::contenders(|_| None, element_types!(bind))
}

fn bind<T: Element>(problem: &MlaDecodeProblem, memory: &Memory, style: Style) -> Work {
    match problem.shape.kv_type {
        KvType::Same => bind_over::<T, T>(problem, memory, style),
        KvType::Fp8 => bind_over::<T, E4m3>(problem, memory, style),
    }
}

fn bind_over<T: Element, C: Element>(
    problem: &MlaDecodeProblem,
    memory: &Memory,
    style: Style,
) -> Work {
    problem.table.validate().map_err(ContenderError::new)?;
    let (problem, q, cache) = (problem.clone(), memory.read("q")?, memory.read("cache")?);
    let mut out = memory.write("out")?;
    let latent = match style {
        Style::Threaded => decode_cpu::latent::<T, C>,
        Style::Plain => plain::latent::<T, C>,
    };
    Ok(Box::new(move || {
        let (shape, table) = (&problem.shape, &problem.table);
        let task = Latent {
            q: &q,
            cache: &cache,
            batch: shape.batch(),
            q_len: shape.q_len,
            heads: shape.heads,
            scale: problem.scale * problem.cache_scale,
            value_scale: problem.cache_scale,
            visible: &|sequence, query| table.visible(sequence, shape.q_len, query),
            row: &|sequence, token| table.row(sequence, token),
        };
        latent(&task, &mut out);
    }))
}
