//! CPU contenders.

use contender::{ContenderError, Contenders};
use norms_cpu::{cross_entropy, layernorm, rmsnorm, softmax, Columns, ColumnsMut, Element};
use numeric::DType;
use shared::cpu::{self, Style, Work};
use shared::element_types;
use shared::memory::{In, Memory, Out};
use workloads::{NormOp, NormProblem};

pub fn contenders() -> Contenders<NormProblem> {
    cpu::contenders(unsupported, element_types!(bind))
}

fn unsupported(problem: &NormProblem) -> Option<String> {
    let types = problem.types;
    let known = types.weight == DType::F32 || types.weight == types.activation;
    (!known).then(|| format!("{} weights; use f32 or the activations' type", types.weight))
}

/// A read-only column vector, in f32 or the activations' type.
enum Shared<T> {
    Wide(In<f32>),
    Same(In<T>),
}

impl<T: Element> Shared<T> {
    fn of(problem: &NormProblem, memory: &Memory, name: &str) -> Result<Self, ContenderError> {
        Ok(match problem.types.weight {
            DType::F32 => Self::Wide(memory.read(name)?),
            _ => Self::Same(memory.read(name)?),
        })
    }

    fn get(&self) -> Columns<'_, T> {
        match self {
            Self::Wide(values) => Columns::Wide(values),
            Self::Same(values) => Columns::Same(values),
        }
    }
}

/// A writable one.
enum SharedMut<T> {
    Wide(Out<f32>),
    Same(Out<T>),
}

impl<T: Element> SharedMut<T> {
    fn of(problem: &NormProblem, memory: &Memory, name: &str) -> Result<Self, ContenderError> {
        Ok(match problem.types.weight {
            DType::F32 => Self::Wide(memory.write(name)?),
            _ => Self::Same(memory.write(name)?),
        })
    }

    fn get(&mut self) -> ColumnsMut<'_, T> {
        match self {
            Self::Wide(values) => ColumnsMut::Wide(values),
            Self::Same(values) => ColumnsMut::Same(values),
        }
    }
}

fn bind<T: Element>(problem: &NormProblem, memory: &Memory, style: Style) -> Work {
    /// The function of that name in a module, or in its plain one.
    macro_rules! of_style {
        ($module:ident::$name:ident) => {
            match style {
                Style::Threaded => $module::$name::<T>,
                Style::Plain => $module::plain::$name::<T>,
            }
        };
    }
    let (columns, epsilon) = (problem.shape.columns, problem.epsilon);
    let shared = |name| Shared::<T>::of(problem, memory, name);
    let shared_mut = |name| SharedMut::<T>::of(problem, memory, name);
    Ok(match problem.op {
        NormOp::RmsNormForward => {
            let run = of_style!(rmsnorm::forward);
            let (x, weight) = (memory.read("x")?, shared("weight")?);
            let mut out = memory.write("out")?;
            Box::new(move || run(&x, weight.get(), &mut out, columns, epsilon))
        }
        NormOp::RmsNormBackward => {
            let run = of_style!(rmsnorm::backward);
            let (x, weight) = (memory.read("x")?, shared("weight")?);
            let (out_gradient, rstd) = (memory.read("out_gradient")?, memory.read("rstd")?);
            let mut x_gradient = memory.write("x_gradient")?;
            let mut weight_gradient = shared_mut("weight_gradient")?;
            Box::new(move || {
                let saved = rmsnorm::Saved {
                    x: &x,
                    weight: weight.get(),
                    out_gradient: &out_gradient,
                    rstd: &rstd,
                };
                run(saved, &mut x_gradient, weight_gradient.get(), columns);
            })
        }
        NormOp::FusedAddRmsNorm => {
            let run = of_style!(rmsnorm::fused_add);
            let (mut x, mut residual) = (memory.write("x")?, memory.write("residual")?);
            let weight = shared("weight")?;
            Box::new(move || run(&mut x, &mut residual, weight.get(), columns, epsilon))
        }
        NormOp::LayerNormForward => {
            let run = of_style!(layernorm::forward);
            let (x, weight, bias) = (memory.read("x")?, shared("weight")?, shared("bias")?);
            let mut out = memory.write("out")?;
            Box::new(move || run(&x, weight.get(), bias.get(), &mut out, columns, epsilon))
        }
        NormOp::LayerNormBackward => {
            let run = of_style!(layernorm::backward);
            let (x, weight) = (memory.read("x")?, shared("weight")?);
            let out_gradient = memory.read("out_gradient")?;
            let (mean, rstd) = (memory.read("mean")?, memory.read("rstd")?);
            let mut x_gradient = memory.write("x_gradient")?;
            let mut weight_gradient = shared_mut("weight_gradient")?;
            let mut bias_gradient = shared_mut("bias_gradient")?;
            Box::new(move || {
                let saved = layernorm::Saved {
                    x: &x,
                    weight: weight.get(),
                    out_gradient: &out_gradient,
                    mean: &mean,
                    rstd: &rstd,
                };
                let (weight, bias) = (weight_gradient.get(), bias_gradient.get());
                run(saved, &mut x_gradient, weight, bias, columns);
            })
        }
        NormOp::SoftmaxForward => {
            let run = of_style!(softmax::forward);
            let (x, mut out) = (memory.read("x")?, memory.write("out")?);
            Box::new(move || run(&x, &mut out, columns))
        }
        NormOp::SoftmaxBackward => {
            let run = of_style!(softmax::backward);
            let (out, gradient) = (memory.read("out")?, memory.read("out_gradient")?);
            let mut x_gradient = memory.write("x_gradient")?;
            Box::new(move || run(&out, &gradient, &mut x_gradient, columns))
        }
        NormOp::CrossEntropyForward => {
            let run = of_style!(cross_entropy::forward);
            let (logits, target) = (memory.read("logits")?, memory.read("target")?);
            let (mut loss, mut lse) = (memory.write("loss")?, memory.write("lse")?);
            Box::new(move || run(&logits, &target, &mut loss, &mut lse, columns))
        }
        NormOp::CrossEntropyBackward => {
            let run = of_style!(cross_entropy::backward);
            let (logits, target) = (memory.read("logits")?, memory.read("target")?);
            let (lse, gradient) = (memory.read("lse")?, memory.read("loss_gradient")?);
            let mut out = memory.write("logits_gradient")?;
            Box::new(move || run(&logits, &target, &lse, &gradient, &mut out))
        }
        NormOp::CrossEntropyForwardBackward => {
            let run = of_style!(cross_entropy::forward_backward);
            let (mut logits, target) = (memory.write("logits")?, memory.read("target")?);
            let mut loss = memory.write("loss")?;
            Box::new(move || run(&mut logits, &target, &mut loss, columns))
        }
    })
}
