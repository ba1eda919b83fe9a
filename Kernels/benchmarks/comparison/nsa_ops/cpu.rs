//! CPU contenders of the branches and their sum.

use host::Element;
use nsa_cpu::{plain, Branch, Gated, Reach};
use workloads::{nsa_gated_tensor, nsa_tensor, NsaOp, NsaProblem};

use crate::cpu_contender::{CpuOp, Style, Tensors};

impl CpuOp for NsaProblem {
    fn run<T: Element>(&self, tensors: &Tensors, style: Style) {
        let shape = self.shape;
        let reach = match self.op {
            NsaOp::Selected => Reach::Selected {
                blocks: tensors.read(nsa_tensor::BLOCKS),
                block: shape.block,
                selected: shape.selected,
            },
            NsaOp::Compressed => Reach::Compressed { block: shape.block },
            NsaOp::Sliding => Reach::Window(shape.window),
            NsaOp::Gated => return gated::<T>(self, tensors, style),
        };
        let input = Branch::<T> {
            queries: tensors.read(nsa_tensor::QUERIES),
            keys: tensors.read(nsa_tensor::KEYS),
            values: tensors.read(nsa_tensor::VALUES),
            reach,
            sequence: shape.sequence,
            heads: shape.heads,
            groups: shape.groups,
            dim: shape.dim,
            scale: self.scale,
        };
        let (out, lse) = (
            tensors.write(nsa_tensor::OUT),
            tensors.write(nsa_tensor::LSE),
        );
        match style {
            Style::Threaded => nsa_cpu::attend(&input, out, lse),
            Style::Plain => plain::attend(&input, out, lse),
        }
    }
}

fn gated<T: Element>(problem: &NsaProblem, tensors: &Tensors, style: Style) {
    let input = Gated::<T> {
        outputs: nsa_gated_tensor::OUTPUTS.map(|tensor| tensors.read(tensor)),
        gates: nsa_gated_tensor::GATES.map(|tensor| tensors.read(tensor)),
        dim: problem.shape.dim,
    };
    let out = tensors.write(nsa_gated_tensor::OUT);
    match style {
        Style::Threaded => nsa_cpu::gated_sum(&input, out),
        Style::Plain => plain::gated_sum(&input, out),
    }
}
