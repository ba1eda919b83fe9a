//! CPU contenders: our threaded implementations, and one plain loop per operation to beat.

use contender::{
    Bound, Buffer, Contender, ContenderError, DeviceInfo, DeviceKind, Identity, Kind, Stream,
    Support,
};
use half::{bf16, f16};
use norms_cpu::{plain, Columns, ColumnsMut, Element, LayerNormSaved, RmsNormSaved};
use numeric::DType;
use workloads::{NormOp, NormProblem};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    Threaded,
    Plain,
}

struct CpuNorms {
    identity: Identity,
    style: Style,
}

pub fn contenders() -> Vec<Box<dyn Contender<NormProblem>>> {
    let contender = |name: &str, kind, style, timed_region: &str| -> Box<dyn Contender<_>> {
        let identity = Identity {
            name: name.to_owned(),
            kind,
            version: "in tree".to_owned(),
            artifact_sha256: None,
            timed_region: timed_region.to_owned(),
        };
        Box::new(CpuNorms { identity, style })
    };
    vec![
        contender("ours", Kind::Own, Style::Threaded, "one call on all cores"),
        contender("loop", Kind::Baseline, Style::Plain, "one call on one core"),
    ]
}

impl Contender<NormProblem> for CpuNorms {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn supports(&self, problem: &NormProblem, device: &DeviceInfo) -> Support {
        let types = problem.types;
        if device.kind != DeviceKind::Cpu {
            Support::No("runs on the CPU only".to_owned())
        } else if !matches!(types.activation, DType::F32 | DType::F16 | DType::Bf16) {
            Support::No(format!(
                "no {} activations; f32, f16 and bf16 only",
                types.activation
            ))
        } else if types.weight != DType::F32 && types.weight != types.activation {
            Support::No(format!(
                "no {} weights; f32 or the activations' type",
                types.weight
            ))
        } else {
            Support::Yes
        }
    }

    fn bind(
        &self,
        problem: &NormProblem,
        buffers: &[Buffer],
        _device: &DeviceInfo,
    ) -> Result<Box<dyn Bound>, ContenderError> {
        Ok(Box::new(BoundNorms {
            problem: problem.clone(),
            buffers: buffers.to_vec(),
            style: self.style,
        }))
    }
}

struct BoundNorms {
    problem: NormProblem,
    buffers: Vec<Buffer>,
    style: Style,
}

impl Bound for BoundNorms {
    fn enqueue(&mut self, _stream: Stream) -> Result<(), ContenderError> {
        match self.problem.types.activation {
            DType::F32 => self.run::<f32>(),
            DType::F16 => self.run::<f16>(),
            DType::Bf16 => self.run::<bf16>(),
            other => return Err(ContenderError::new(format!("no {other} activations"))),
        }
        Ok(())
    }
}

impl BoundNorms {
    fn read<T>(&self, tensor: usize) -> &[T] {
        let Buffer { address, bytes } = self.buffers[tensor];
        // SAFETY: the harness keeps the buffer alive and unaliased while the call that it made
        // runs, aligned to 256 bytes; any bits are a value of the element types used here.
        unsafe { std::slice::from_raw_parts(address as *const T, bytes / size_of::<T>()) }
    }

    #[expect(
        clippy::mut_from_ref,
        reason = "each tensor is another buffer, named once per call"
    )]
    fn write<T>(&self, tensor: usize) -> &mut [T] {
        let Buffer { address, bytes } = self.buffers[tensor];
        // SAFETY: as in `read`; and no operation names a written tensor twice.
        unsafe { std::slice::from_raw_parts_mut(address as *mut T, bytes / size_of::<T>()) }
    }

    fn columns<T: Element>(&self, tensor: usize) -> Columns<'_, T> {
        if self.problem.types.weight == DType::F32 {
            Columns::Wide(self.read(tensor))
        } else {
            Columns::Same(self.read(tensor))
        }
    }

    fn columns_mut<T: Element>(&self, tensor: usize) -> ColumnsMut<'_, T> {
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
        }
    }
}
