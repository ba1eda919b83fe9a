//! CPU contenders.

#[path = "../cpu_contender.rs"]
mod cpu_contender;

use contender::{Contender, ContenderError};
use decode_cpu::{plain, Element, Latent};
use workloads::{mla_tensor as at, MlaDecodeProblem};

use cpu_contender::{CpuOp, Style, Tensors};

pub fn contenders() -> Vec<Box<dyn Contender<MlaDecodeProblem>>> {
    cpu_contender::contenders()
}

impl CpuOp for MlaDecodeProblem {
    fn validate(&self) -> Result<(), ContenderError> {
        self.table.validate().map_err(ContenderError::new)
    }

    fn run<T: Element>(&self, tensors: &Tensors, style: Style) {
        let shape = &self.shape;
        let task = Latent::<T> {
            q: tensors.read(at::Q),
            cache: tensors.read(at::CACHE),
            batch: shape.batch(),
            q_len: shape.q_len,
            heads: shape.heads,
            scale: self.scale,
            visible: &|sequence, query| self.table.visible(sequence, shape.q_len, query),
            row: &|sequence, token| self.cache_row(sequence, token),
        };
        let out = tensors.write(at::OUT);
        match style {
            Style::Threaded => decode_cpu::latent(&task, out),
            Style::Plain => plain::latent(&task, out),
        }
    }
}
