//! CPU contenders.

#[path = "../cpu_contender.rs"]
mod cpu_contender;

use contender::Contender;
use norms_cpu::{plain, Columns, ColumnsMut, Element, LayerNormSaved, RmsNormSaved};
use numeric::DType;
use workloads::{NormOp, NormProblem};

use cpu_contender::{CpuOp, Style, Tensors};

pub fn contenders() -> Vec<Box<dyn Contender<NormProblem>>> {
    cpu_contender::contenders()
}

impl CpuOp for NormProblem {
    fn unsupported(&self) -> Option<String> {
        let types = self.types;
        let known = types.weight == DType::F32 || types.weight == types.activation;
        (!known).then(|| format!("no {} weights; f32 or the activations' type", types.weight))
    }

    fn run<T: Element>(&self, tensors: &Tensors, style: Style) {
        let problem = self;
        Call {
            problem,
            tensors,
            style,
        }
        .run::<T>();
    }
}

struct Call<'a> {
    problem: &'a NormProblem,
    tensors: &'a Tensors,
    style: Style,
}

impl<'a> Call<'a> {
    fn read<T>(&self, tensor: usize) -> &'a [T] {
        self.tensors.read(tensor)
    }

    fn write<T>(&self, tensor: usize) -> &'a mut [T] {
        self.tensors.write(tensor)
    }

    fn columns<T: Element>(&self, tensor: usize) -> Columns<'a, T> {
        if self.problem.types.weight == DType::F32 {
            Columns::Wide(self.read(tensor))
        } else {
            Columns::Same(self.read(tensor))
        }
    }

    fn columns_mut<T: Element>(&self, tensor: usize) -> ColumnsMut<'a, T> {
        if self.problem.types.weight == DType::F32 {
            ColumnsMut::Wide(self.write(tensor))
        } else {
            ColumnsMut::Same(self.write(tensor))
        }
    }

    /// Tensor numbers are places in the problem's list.
    fn run<T: Element>(&self) {
        /// Calls the function of that name in the crate or in its plain module.
        macro_rules! call {
            ($name:ident($($argument:expr),*)) => {
                match self.style {
                    Style::Threaded => norms_cpu::$name::<T>($($argument),*),
                    Style::Plain => plain::$name::<T>($($argument),*),
                }
            };
        }
        let (columns, epsilon) = (self.problem.shape.columns, self.problem.epsilon);
        match self.problem.op {
            NormOp::RmsNormForward => {
                let (weight, out) = (self.columns(1), self.write(2));
                call!(rmsnorm_forward(self.read(0), weight, out, columns, epsilon));
            }
            NormOp::RmsNormBackward => {
                let saved = RmsNormSaved {
                    x: self.read(0),
                    weight: self.columns(1),
                    out_gradient: self.read(2),
                    rstd: self.read(3),
                };
                call!(rmsnorm_backward(
                    saved,
                    self.write(4),
                    self.columns_mut(5),
                    columns
                ));
            }
            NormOp::FusedAddRmsNorm => {
                let (x, residual) = (self.write(0), self.write(1));
                call!(fused_add_rmsnorm(
                    x,
                    residual,
                    self.columns(2),
                    columns,
                    epsilon
                ));
            }
            NormOp::LayerNormForward => {
                let (x, out) = (self.read(0), self.write(3));
                let (weight, bias) = (self.columns(1), self.columns(2));
                call!(layernorm_forward(x, weight, bias, out, columns, epsilon));
            }
            NormOp::LayerNormBackward => {
                let saved = LayerNormSaved {
                    x: self.read(0),
                    weight: self.columns(1),
                    out_gradient: self.read(2),
                    mean: self.read(3),
                    rstd: self.read(4),
                };
                let (weight, bias) = (self.columns_mut(6), self.columns_mut(7));
                call!(layernorm_backward(
                    saved,
                    self.write(5),
                    weight,
                    bias,
                    columns
                ));
            }
            NormOp::SoftmaxForward => {
                call!(softmax_forward(self.read(0), self.write(1), columns));
            }
            NormOp::SoftmaxBackward => {
                let (out, gradient) = (self.read(0), self.read(1));
                call!(softmax_backward(out, gradient, self.write(2), columns));
            }
            NormOp::CrossEntropyForward => {
                let (logits, targets) = (self.read(0), self.read(1));
                let (loss, lse) = (self.write(2), self.write(3));
                call!(cross_entropy_forward(logits, targets, loss, lse, columns));
            }
            NormOp::CrossEntropyBackward => {
                let (logits, targets) = (self.read(0), self.read(1));
                let (lse, gradient, out) = (self.read(2), self.read(3), self.write(4));
                call!(cross_entropy_backward(logits, targets, lse, gradient, out));
            }
            NormOp::CrossEntropyForwardBackward => {
                let (logits, targets, loss) = (self.write(0), self.read(1), self.write(2));
                call!(cross_entropy_forward_backward(
                    logits, targets, loss, columns
                ));
            }
        }
    }
}
