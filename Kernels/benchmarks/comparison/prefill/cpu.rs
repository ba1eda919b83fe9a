//! CPU contenders.

use contender::Contender;
use prefill_cpu::{plain_prefill, prefill, Batch, Element};
use workloads::PrefillProblem;

use super::cpu_contender::{self, CpuOp, Style, Tensors};

pub fn contenders() -> Vec<Box<dyn Contender<PrefillProblem>>> {
    cpu_contender::contenders()
}

impl CpuOp for PrefillProblem {
    /// Tensor numbers are places in the problem's list.
    fn run<T: Element>(&self, tensors: &Tensors, style: Style) {
        let shape = &self.shape;
        let batch = Batch::<T> {
            q: tensors.read(0),
            k: tensors.read(1),
            v: tensors.read(2),
            starts_q: tensors.read(3),
            starts_kv: tensors.read(4),
            heads: shape.heads,
            kv_heads: shape.kv_heads,
            head_dim: shape.head_dim,
            causal: shape.causal,
            scale: self.scale,
        };
        let out = tensors.write(5);
        let lse = self.op.has_lse().then(|| tensors.write(6));
        match style {
            Style::Threaded => prefill(&batch, out, lse),
            Style::Plain => plain_prefill(&batch, out, lse),
        }
    }
}
