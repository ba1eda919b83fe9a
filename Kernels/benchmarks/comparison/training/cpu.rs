//! CPU contenders for the training primitives.

use activations_cpu::Unit;
use contender::{ContenderError, Contenders};
use host::Element;
use quantize_cpu::blocks::{self, Format};
use quantize_cpu::{norm, Scale, Tiling, Ue8m0};
use rope_cpu::Angles;
use shared::cpu::{self, Style, Work};
use shared::element_types;
use shared::memory::Memory;
use workloads::{
    Activation, Pass, RopeShape, RowShape, Scaling, TrainingOp, TrainingProblem, TrainingShape,
};

pub fn contenders() -> Contenders<TrainingProblem> {
    cpu::contenders(unsupported, element_types!(bind))
}

fn unsupported(problem: &TrainingProblem) -> Option<String> {
    match (problem.op, problem.shape) {
        (
            TrainingOp::Quantize(scaling)
            | TrainingOp::Dequantize(scaling)
            | TrainingOp::NormQuantize(scaling),
            TrainingShape::Rows(RowShape { columns, .. }),
        ) if scaling.is_paired() && columns % 2 == 1 => Some(format!(
            "columns is {columns}; rows of pairs have an even number"
        )),
        _ => None,
    }
}

fn bind<T: Element>(problem: &TrainingProblem, memory: &Memory, style: Style) -> Work {
    let call = Call { memory, style };
    match (problem.op, problem.shape) {
        (TrainingOp::Activation(activation, pass), _) => call.activation::<T>(activation, pass),
        (TrainingOp::Packed(unit), TrainingShape::Rows(shape)) => {
            call.packed::<T>(unit, shape.columns)
        }
        (TrainingOp::Rope(pairs, pass), TrainingShape::Rope(shape)) => {
            call.rope::<T>(pairs, pass, shape)
        }
        (TrainingOp::Quantize(scaling), TrainingShape::Rows(shape)) => match scaling {
            scaling if scaling.is_tiled() => call.quantize_tiled::<T>(scaling, shape),
            Scaling::GroupUe8m0 => call.quantize::<T, Ue8m0>(tiling(scaling, shape)),
            _ => call.quantize::<T, f32>(tiling(scaling, shape)),
        },
        (TrainingOp::Dequantize(scaling), TrainingShape::Rows(shape)) => match scaling {
            scaling if scaling.is_tiled() => call.dequantize_tiled::<T>(scaling, shape),
            Scaling::GroupUe8m0 => call.dequantize::<T, Ue8m0>(tiling(scaling, shape)),
            _ => call.dequantize::<T, f32>(tiling(scaling, shape)),
        },
        (op @ TrainingOp::NormQuantize(scaling), _) if scaling.is_tiled() => {
            call.norm_quantize_tiled::<T>(op, scaling)
        }
        (op @ TrainingOp::NormQuantize(_), _) => call.norm_quantize::<T>(op),
        (op, shape) => Err(ContenderError::new(format!("{shape} does not fit {op}"))),
    }
}

#[derive(Clone, Copy)]
struct Call<'a> {
    memory: &'a Memory<'a>,
    style: Style,
}

/// The function of that name in a crate or in its plain module.
macro_rules! of_style {
    ($style:expr, $crate_name:ident::$name:ident::<$($type:ty),+>) => {
        match $style {
            Style::Threaded => $crate_name::$name::<$($type),+>,
            Style::Plain => $crate_name::plain::$name::<$($type),+>,
        }
    };
}

impl Call<'_> {
    fn activation<T: Element>(self, activation: Activation, pass: Pass) -> Work {
        let memory = self.memory;
        let unit = unit_of(activation.unit())?;
        Ok(match (activation.is_gated(), pass) {
            (false, Pass::Forward) => {
                let run = of_style!(self.style, activations_cpu::forward::<T>);
                let (x, mut out) = (memory.read("x")?, memory.write("out")?);
                Box::new(move || run(unit, &x, &mut out))
            }
            (false, Pass::Backward) => {
                let run = of_style!(self.style, activations_cpu::backward::<T>);
                let (x, gradient) = (memory.read("x")?, memory.read("out_gradient")?);
                let mut x_gradient = memory.write("x_gradient")?;
                Box::new(move || run(unit, &x, &gradient, &mut x_gradient))
            }
            (true, Pass::Forward) => {
                let run = of_style!(self.style, activations_cpu::gated_forward::<T>);
                let (gate, up) = (memory.read("gate")?, memory.read("up")?);
                let mut out = memory.write("out")?;
                Box::new(move || run(unit, &gate, &up, &mut out))
            }
            (true, Pass::Backward) => {
                let run = of_style!(self.style, activations_cpu::gated_backward::<T>);
                let (mut gate, mut up) = (memory.write("gate")?, memory.write("up")?);
                let gradient = memory.read("out_gradient")?;
                Box::new(move || run(unit, &mut gate, &mut up, &gradient))
            }
        })
    }

    fn packed<T: Element>(self, unit: reference::activation::Unit, columns: usize) -> Work {
        let unit = unit_of(unit)?;
        let run = of_style!(self.style, activations_cpu::packed_forward::<T>);
        let input = self.memory.read("gate_and_up")?;
        let mut out = self.memory.write("out")?;
        Ok(Box::new(move || run(unit, &input, columns, &mut out)))
    }

    fn rope<T: Element>(self, pairs: reference::rope::Pairs, pass: Pass, shape: RopeShape) -> Work {
        let pairs = match pairs {
            reference::rope::Pairs::HalfSplit => rope_cpu::Pairs::HalfSplit,
            reference::rope::Pairs::Interleaved => rope_cpu::Pairs::Interleaved,
        };
        let run = of_style!(self.style, rope_cpu::rotate::<T>);
        let (cos, sin) = (self.memory.read("cos")?, self.memory.read("sin")?);
        let mut queries = self.memory.write("queries")?;
        let mut keys = self.memory.write("keys")?;
        Ok(Box::new(move || {
            let angles = Angles {
                cos: &cos,
                sin: &sin,
                dim: shape.dim,
                backward: pass == Pass::Backward,
            };
            run(pairs, &mut queries, shape.query_heads, angles);
            run(pairs, &mut keys, shape.key_heads, angles);
        }))
    }

    fn quantize<T: Element, S: Scale>(self, tiling: Tiling) -> Work {
        let run = of_style!(self.style, quantize_cpu::quantize::<T, S>);
        let x = self.memory.read("x")?;
        let mut quantized = self.memory.write("quantized")?;
        let mut scales = self.memory.write("scales")?;
        Ok(Box::new(move || {
            run(&x, &mut quantized, &mut scales, tiling)
        }))
    }

    fn norm_quantize<T: Element>(self, op: TrainingOp) -> Work {
        let run = match self.style {
            Style::Threaded => norm::quantize::<T>,
            Style::Plain => norm::plain::quantize::<T>,
        };
        let epsilon = epsilon_of(op)?;
        let (x, weight) = (self.memory.read("x")?, self.memory.read("weight")?);
        let mut quantized = self.memory.write("quantized")?;
        let mut scales = self.memory.write("scales")?;
        Ok(Box::new(move || {
            run(&x, &weight, &mut quantized, &mut scales, epsilon)
        }))
    }

    fn norm_quantize_tiled<T: Element>(self, op: TrainingOp, scaling: Scaling) -> Work {
        let run = match self.style {
            Style::Threaded => norm::quantize_tiled::<T>,
            Style::Plain => norm::plain::quantize_tiled::<T>,
        };
        let (format, epsilon) = (self.format(scaling)?, epsilon_of(op)?);
        let (x, weight) = (self.memory.read("x")?, self.memory.read("weight")?);
        let mut quantized = self.memory.write("quantized")?;
        let mut scales = self.memory.write("scales")?;
        Ok(Box::new(move || {
            run(&x, &weight, &mut quantized, &mut scales, epsilon, format())
        }))
    }

    fn quantize_tiled<T: Element>(self, scaling: Scaling, shape: RowShape) -> Work {
        let run = match self.style {
            Style::Threaded => blocks::quantize::<T>,
            Style::Plain => blocks::plain::quantize::<T>,
        };
        let format = self.format(scaling)?;
        let x = self.memory.read("x")?;
        let mut quantized = self.memory.write("quantized")?;
        let mut scales = self.memory.write("scales")?;
        Ok(Box::new(move || {
            run(&x, &mut quantized, &mut scales, shape.columns, format())
        }))
    }

    fn dequantize_tiled<T: Element>(self, scaling: Scaling, shape: RowShape) -> Work {
        let run = match self.style {
            Style::Threaded => blocks::dequantize::<T>,
            Style::Plain => blocks::plain::dequantize::<T>,
        };
        let format = self.format(scaling)?;
        let (quantized, scales) = (self.memory.read("quantized")?, self.memory.read("scales")?);
        let mut out = self.memory.write("out")?;
        Ok(Box::new(move || {
            run(&quantized, &scales, &mut out, shape.columns, format())
        }))
    }

    /// The format with the tensor's scale, which is read at every run.
    fn format(self, scaling: Scaling) -> Result<Box<dyn Fn() -> Format>, ContenderError> {
        match scaling {
            Scaling::Mxfp8 => return Ok(Box::new(|| Format::Mxfp8)),
            Scaling::Mxfp4 => return Ok(Box::new(|| Format::Mxfp4)),
            _ => {}
        }
        let of_tensor = self.memory.read::<f32>("tensor_scale")?;
        Ok(Box::new(move || Format::Nvfp4(of_tensor[0])))
    }

    fn dequantize<T: Element, S: Scale>(self, tiling: Tiling) -> Work {
        let run = of_style!(self.style, quantize_cpu::dequantize::<T, S>);
        let (quantized, scales) = (self.memory.read("quantized")?, self.memory.read("scales")?);
        let mut out = self.memory.write("out")?;
        Ok(Box::new(move || run(&quantized, &scales, &mut out, tiling)))
    }
}

fn epsilon_of(op: TrainingOp) -> Result<f32, ContenderError> {
    let unknown = || ContenderError::new(format!("no epsilon for {op}"));
    op.epsilon().ok_or_else(unknown)
}

fn unit_of(unit: reference::activation::Unit) -> Result<Unit, ContenderError> {
    Unit::named(unit.name())
        .ok_or_else(|| ContenderError::new(format!("no CPU kernel for {}", unit.name())))
}

fn tiling(scaling: Scaling, shape: RowShape) -> Tiling {
    let (tile_rows, tile_columns) = scaling.tile(shape.columns);
    Tiling {
        columns: shape.columns,
        tile_rows,
        tile_columns,
    }
}
