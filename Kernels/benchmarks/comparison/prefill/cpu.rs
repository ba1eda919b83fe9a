//! CPU contenders.

use contender::Contenders;
use prefill_cpu::{plain_prefill, prefill, Batch, Element};
use shared::cpu::{self, Style, Work};
use shared::element_types;
use shared::memory::Memory;
use workloads::PrefillProblem;

pub fn contenders() -> Contenders<PrefillProblem> {
    cpu::contenders(|_| None, element_types!(bind))
}

fn bind<T: Element>(problem: &PrefillProblem, memory: &Memory, style: Style) -> Work {
    let (shape, scale) = (problem.shape.clone(), problem.scale);
    let (q, k, v) = (memory.read("q")?, memory.read("k")?, memory.read("v")?);
    let (starts_q, starts_kv) = (memory.read("cu_q")?, memory.read("cu_kv")?);
    let mut out = memory.write("out")?;
    let mut lse = match problem.op.has_lse() {
        true => Some(memory.write("lse")?),
        false => None,
    };
    let prefill = match style {
        Style::Threaded => prefill::<T>,
        Style::Plain => plain_prefill::<T>,
    };
    Ok(Box::new(move || {
        let batch = Batch {
            q: &q,
            k: &k,
            v: &v,
            starts_q: &starts_q,
            starts_kv: &starts_kv,
            heads: shape.heads,
            kv_heads: shape.kv_heads,
            head_dim: shape.head_dim,
            value_dim: shape.value_dim(),
            causal: shape.causal,
            scale,
        };
        prefill(&batch, &mut out, lse.as_deref_mut());
    }))
}
