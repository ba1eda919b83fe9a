//! CPU contenders of the training primitives.

use activations_cpu::Unit;
use host::Element;
use quantize_cpu::{Scale, Tiling, Ue8m0};
use rope_cpu::Angles;
use workloads::{
    Activation, Pass, RopeShape, RowShape, Scaling, TrainingOp, TrainingProblem, TrainingShape,
};

use crate::cpu_contender::{CpuOp, Style, Tensors};

impl CpuOp for TrainingProblem {
    fn run<T: Element>(&self, tensors: &Tensors, style: Style) {
        Call { tensors, style }.run::<T>(self);
    }
}

#[derive(Clone, Copy)]
struct Call<'a> {
    tensors: &'a Tensors,
    style: Style,
}

impl Call<'_> {
    fn run<T: Element>(self, problem: &TrainingProblem) {
        match (problem.op, problem.shape) {
            (TrainingOp::Activation(activation, pass), _) => self.activation::<T>(activation, pass),
            (TrainingOp::Packed(unit), TrainingShape::Rows(shape)) => {
                self.packed::<T>(unit, shape.columns);
            }
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
    fn activation<T: Element>(self, activation: Activation, pass: Pass) {
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
            (false, Pass::Forward) => {
                call!(forward(unit, self.tensors.read(0), self.tensors.write(1)))
            }
            (false, Pass::Backward) => {
                call!(backward(
                    unit,
                    self.tensors.read(0),
                    self.tensors.read(1),
                    self.tensors.write(2)
                ));
            }
            (true, Pass::Forward) => {
                call!(gated_forward(
                    unit,
                    self.tensors.read(0),
                    self.tensors.read(1),
                    self.tensors.write(2)
                ));
            }
            (true, Pass::Backward) => {
                call!(gated_backward(
                    unit,
                    self.tensors.write(0),
                    self.tensors.write(1),
                    self.tensors.read(2)
                ));
            }
        }
    }

    fn packed<T: Element>(self, unit: reference::activation::Unit, columns: usize) {
        let unit = match unit {
            reference::activation::Unit::Gelu => Unit::Gelu,
            reference::activation::Unit::GeluTanh => Unit::GeluTanh,
            reference::activation::Unit::Silu => Unit::Silu,
        };
        let (input, out) = (self.tensors.read(0), self.tensors.write(1));
        match self.style {
            Style::Threaded => activations_cpu::packed_forward::<T>(unit, input, columns, out),
            Style::Plain => activations_cpu::plain::packed_forward::<T>(unit, input, columns, out),
        }
    }

    fn rope<T: Element>(self, pairs: reference::rope::Pairs, pass: Pass, shape: RopeShape) {
        let pairs = match pairs {
            reference::rope::Pairs::HalfSplit => rope_cpu::Pairs::HalfSplit,
            reference::rope::Pairs::Interleaved => rope_cpu::Pairs::Interleaved,
        };
        let angles = Angles {
            cos: self.tensors.read(2),
            sin: self.tensors.read(3),
            dim: shape.dim,
            backward: pass == Pass::Backward,
        };
        for (tensor, heads) in [(0, shape.query_heads), (1, shape.key_heads)] {
            match self.style {
                Style::Threaded => {
                    rope_cpu::rotate::<T>(pairs, self.tensors.write(tensor), heads, angles);
                }
                Style::Plain => {
                    rope_cpu::plain::rotate::<T>(pairs, self.tensors.write(tensor), heads, angles);
                }
            }
        }
    }

    fn quantize<T: Element, S: Scale>(self, scaling: Scaling, shape: RowShape) {
        let (x, quantized, scales) = (
            self.tensors.read(0),
            self.tensors.write(1),
            self.tensors.write(2),
        );
        let tiling = tiling(scaling, shape);
        match self.style {
            Style::Threaded => quantize_cpu::quantize::<T, S>(x, quantized, scales, tiling),
            Style::Plain => quantize_cpu::plain::quantize::<T, S>(x, quantized, scales, tiling),
        }
    }

    fn dequantize<T: Element, S: Scale>(self, scaling: Scaling, shape: RowShape) {
        let (quantized, scales, out) = (
            self.tensors.read(0),
            self.tensors.read(1),
            self.tensors.write(2),
        );
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
