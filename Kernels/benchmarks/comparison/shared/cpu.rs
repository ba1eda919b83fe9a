//! CPU contenders: a threaded implementation of ours, and a plain loop to beat.

use std::convert::Infallible;

use contender::{
    bound, Binding, ContenderError, Contenders, DeviceKind, Facts, Identity, Kind, Problem, Tensors,
};
pub use half::{bf16, f16};
use numeric::DType;

use crate::memory::Memory;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Style {
    Threaded,
    Plain,
}

/// An operation with its memory.
pub type Work = Result<Box<dyn FnMut()>, ContenderError>;

/// Binds problems of one element type.
pub type Bind<P> = fn(&P, &Memory, Style) -> Work;

/// A generic [`Bind`] for f32, f16 and bf16.
#[macro_export]
macro_rules! element_types {
    ($bind:ident) => {
        [
            $bind::<f32>,
            $bind::<$crate::cpu::f16>,
            $bind::<$crate::cpu::bf16>,
        ]
    };
}

/// `ours` and `loop`; `unsupported` says why they reject a problem, apart from its type.
pub fn contenders<P: Problem>(
    unsupported: fn(&P) -> Option<String>,
    bind: [Bind<P>; 3],
) -> Contenders<P> {
    let contender = |name: &str, kind, style, timed_region: &str| {
        contender::contender(
            Identity::in_tree(name, kind, timed_region),
            DeviceKind::Cpu,
            move |problem: &P, _device| match of_type(problem.dtype(), bind) {
                Ok(_) => unsupported(problem),
                Err(reason) => Some(reason),
            },
            move |problem, tensors, _device| {
                let bind = of_type(problem.dtype(), bind).map_err(ContenderError::new)?;
                bind_work(tensors, |memory| bind(problem, memory, style))
            },
        )
    };
    vec![
        contender("ours", Kind::Own, Style::Threaded, "one call on all cores"),
        contender("loop", Kind::Baseline, Style::Plain, "one call on one core"),
    ]
}

/// The first of `contenders`, which is ours, then libraries, then the rest: the first baseline that takes
/// a problem is the default to compare with.
pub fn after_ours<P>(mut contenders: Contenders<P>, libraries: Contenders<P>) -> Contenders<P> {
    contenders.splice(1..1, libraries);
    contenders
}

fn of_type<B>(dtype: DType, [of_f32, of_f16, of_bf16]: [B; 3]) -> Result<B, String> {
    match dtype {
        DType::F32 => Ok(of_f32),
        DType::F16 => Ok(of_f16),
        DType::Bf16 => Ok(of_bf16),
        other => Err(format!("{other} is not supported; use f32, f16 or bf16")),
    }
}

/// Binds an operation that runs on the CPU.
pub fn bind_work(tensors: &Tensors, bind: impl FnOnce(&Memory) -> Work) -> Binding {
    // SAFETY: on the CPU the harness's buffers are host memory, aligned to 256 bytes, and outlive
    // what is bound to them; while it runs, the harness does not touch them.
    let memory = unsafe { Memory::new(tensors) };
    let mut work = bind(&memory)?;
    Ok(bound(Facts::new(), move |_stream| {
        work();
        Ok::<_, Infallible>(())
    }))
}
