//! CPU contenders: our threaded implementations, and one plain loop per operation to beat.

use activations_cpu::Unit;
use contender::{
    Bound, Buffer, Contender, ContenderError, DeviceInfo, DeviceKind, Identity, Kind, Stream,
    Support,
};
use half::{bf16, f16};
use host::Element;
use numeric::DType;
use quantize_cpu::{Scale, Tiling, Ue8m0};
use rope_cpu::Angles;
use workloads::{
    Activation, Pass, RopeShape, RowShape, Scaling, TrainingOp, TrainingProblem, TrainingShape,
};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    Threaded,
    Plain,
}

struct CpuTrainingOps {
    identity: Identity,
    style: Style,
}

pub fn contenders() -> Vec<Box<dyn Contender<TrainingProblem>>> {
    let contender = |name: &str, kind, style, timed_region: &str| -> Box<dyn Contender<_>> {
        let identity = Identity {
            name: name.to_owned(),
            kind,
            version: "in tree".to_owned(),
            artifact_sha256: None,
            timed_region: timed_region.to_owned(),
        };
        Box::new(CpuTrainingOps { identity, style })
    };
    vec![
        contender("ours", Kind::Own, Style::Threaded, "one call on all cores"),
        contender("loop", Kind::Baseline, Style::Plain, "one call on one core"),
    ]
}

impl Contender<TrainingProblem> for CpuTrainingOps {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn supports(&self, problem: &TrainingProblem, device: &DeviceInfo) -> Support {
        if device.kind != DeviceKind::Cpu {
            Support::No("runs on the CPU only".to_owned())
        } else if !matches!(problem.dtype, DType::F32 | DType::F16 | DType::Bf16) {
            Support::No(format!("no {}; f32, f16 and bf16 only", problem.dtype))
        } else {
            Support::Yes
        }
    }

    fn bind(
        &self,
        problem: &TrainingProblem,
        buffers: &[Buffer],
        _device: &DeviceInfo,
    ) -> Result<Box<dyn Bound>, ContenderError> {
        Ok(Box::new(BoundOp {
            problem: problem.clone(),
            buffers: buffers.to_vec(),
            style: self.style,
        }))
    }
}

struct BoundOp {
    problem: TrainingProblem,
    buffers: Vec<Buffer>,
    style: Style,
}

impl Bound for BoundOp {
    fn enqueue(&mut self, _stream: Stream) -> Result<(), ContenderError> {
        match self.problem.dtype {
            DType::F32 => self.run::<f32>(),
            DType::F16 => self.run::<f16>(),
            DType::Bf16 => self.run::<bf16>(),
            other => return Err(ContenderError::new(format!("no {other}"))),
        }
        Ok(())
    }
}

impl BoundOp {
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

    fn run<T: Element>(&self) {
        match (self.problem.op, self.problem.shape) {
            (TrainingOp::Activation(activation, pass), _) => self.activation::<T>(activation, pass),
            (TrainingOp::Rope(pairs, pass), TrainingShape::Rope(shape)) => {
                self.rope::<T>(pairs, pass, shape);
            }
            (TrainingOp::Quantize(scaling), TrainingShape::Rows(shape)) => match scaling {
                Scaling::GroupUe8m0 => self.quantize::<T, Ue8m0>(scaling, shape),
                _ => self.quantize::<T, f32>(scaling, shape),
            },
            (TrainingOp::Dequantize(scaling), TrainingShape::Rows(shape)) => match scaling {
                Scaling::GroupUe8m0 => self.dequantize::<T, Ue8m0>(scaling, shape),
                _ => self.dequantize::<T, f32>(scaling, shape),
            },
            (op, shape) => unreachable!("{op} on {shape} cannot be made"),
        }
    }

    /// Tensor numbers are places in the problem's list.
    fn activation<T: Element>(&self, activation: Activation, pass: Pass) {
        /// Calls the function of that name in the crate or in its plain module.
        macro_rules! call {
            ($name:ident($($argument:expr),*)) => {
                match self.style {
                    Style::Threaded => activations_cpu::$name::<T>($($argument),*),
                    Style::Plain => activations_cpu::plain::$name::<T>($($argument),*),
                }
            };
        }
        let unit = match activation {
            Activation::Gelu => Unit::Gelu,
            Activation::GeluTanh | Activation::GeGlu => Unit::GeluTanh,
            Activation::SwiGlu => Unit::Silu,
        };
        match (activation.is_gated(), pass) {
            (false, Pass::Forward) => call!(forward(unit, self.read(0), self.write(1))),
            (false, Pass::Backward) => {
                call!(backward(unit, self.read(0), self.read(1), self.write(2)));
            }
            (true, Pass::Forward) => {
                call!(gated_forward(
                    unit,
                    self.read(0),
                    self.read(1),
                    self.write(2)
                ));
            }
            (true, Pass::Backward) => {
                call!(gated_backward(
                    unit,
                    self.write(0),
                    self.write(1),
                    self.read(2)
                ));
            }
        }
    }

    fn rope<T: Element>(&self, pairs: reference::rope::Pairs, pass: Pass, shape: RopeShape) {
        let pairs = match pairs {
            reference::rope::Pairs::HalfSplit => rope_cpu::Pairs::HalfSplit,
            reference::rope::Pairs::Interleaved => rope_cpu::Pairs::Interleaved,
        };
        let angles = Angles {
            cos: self.read(2),
            sin: self.read(3),
            dim: shape.dim,
            backward: pass == Pass::Backward,
        };
        for (tensor, heads) in [(0, shape.query_heads), (1, shape.key_heads)] {
            match self.style {
                Style::Threaded => {
                    rope_cpu::rotate::<T>(pairs, self.write(tensor), heads, angles);
                }
                Style::Plain => {
                    rope_cpu::plain::rotate::<T>(pairs, self.write(tensor), heads, angles);
                }
            }
        }
    }

    fn quantize<T: Element, S: Scale>(&self, scaling: Scaling, shape: RowShape) {
        let (x, quantized, scales) = (self.read(0), self.write(1), self.write(2));
        let tiling = tiling(scaling, shape);
        match self.style {
            Style::Threaded => quantize_cpu::quantize::<T, S>(x, quantized, scales, tiling),
            Style::Plain => quantize_cpu::plain::quantize::<T, S>(x, quantized, scales, tiling),
        }
    }

    fn dequantize<T: Element, S: Scale>(&self, scaling: Scaling, shape: RowShape) {
        let (quantized, scales, out) = (self.read(0), self.read(1), self.write(2));
        let tiling = tiling(scaling, shape);
        match self.style {
            Style::Threaded => quantize_cpu::dequantize::<T, S>(quantized, scales, out, tiling),
            Style::Plain => quantize_cpu::plain::dequantize::<T, S>(quantized, scales, out, tiling),
        }
    }
}

fn tiling(scaling: Scaling, shape: RowShape) -> Tiling {
    let (tile_rows, tile_columns) = scaling.tile(shape.columns);
    Tiling {
        columns: shape.columns,
        tile_rows,
        tile_columns,
    }
}
