//! CPU contenders.

#[path = "../cpu_contender.rs"]
mod cpu_contender;

use contender::{Contender, ContenderError};
use decode_cpu::{plain, Decode, E4m3, Element};
use workloads::{decode_tensor as at, DecodeProblem, KvType};

use cpu_contender::{CpuOp, Style, Tensors};

pub fn contenders() -> Vec<Box<dyn Contender<DecodeProblem>>> {
    cpu_contender::contenders()
}

impl CpuOp for DecodeProblem {
    fn validate(&self) -> Result<(), ContenderError> {
        self.table.validate().map_err(ContenderError::new)
    }

    fn run<T: Element>(&self, tensors: &Tensors, style: Style) {
        match self.shape.kv_type {
            KvType::Same => run::<T, T>(self, tensors, style),
            KvType::Fp8 => run::<T, E4m3>(self, tensors, style),
        }
    }
}

fn run<T: Element, C: Element>(problem: &DecodeProblem, tensors: &Tensors, style: Style) {
    let shape = &problem.shape;
    let task = Decode::<T, C> {
        q: tensors.read(at::Q),
        keys: tensors.read(at::K_PAGES),
        values: tensors.read(at::V_PAGES),
        batch: shape.batch(),
        q_len: shape.q_len,
        heads: shape.heads,
        kv_heads: shape.kv_heads,
        dim: shape.head_dim,
        scale: problem.scale * problem.k_scale,
        value_scale: problem.v_scale,
        visible: &|sequence, query| problem.table.visible(sequence, shape.q_len, query),
        row: &|sequence, token, head| problem.cache_row(sequence, token, head),
    };
    let out = tensors.write(at::OUT);
    match style {
        Style::Threaded => decode_cpu::decode(&task, out),
        Style::Plain => plain::decode(&task, out),
    }
}
