//! Liger's Triton kernels, with the grids and arguments of its Python functions.

use contender::{
    bound, contender, Binding, ContenderError, Contenders, DeviceInfo, DeviceKind, Facts, Identity,
    Problem, Tensors,
};
use numeric::DType;
use reference::rope::Pairs;
use triton::{Argument, Library, Loaded};
use workloads::{
    Activation, Pass, RopeShape, RowShape, TrainingOp, TrainingProblem, TrainingShape,
};

pub fn contenders() -> Contenders<TrainingProblem> {
    let region = "the op's one kernel, launched through the driver";
    let version = "liger-kernel 0.8.5, triton 3.6.0";
    let identity = Identity::baseline("liger", version, None, region);
    vec![contender(identity, DeviceKind::Cuda, unsupported, bind)]
}

/// The name that the recipe gave the kernel; none for what Liger does not have.
fn kernel_name(problem: &TrainingProblem) -> Option<String> {
    let width = match problem.shape {
        TrainingShape::Rows(shape) => format!("n{}", shape.columns),
        TrainingShape::Rope(shape) => {
            let RopeShape {
                query_heads,
                key_heads,
                dim,
                ..
            } = shape;
            format!("h{query_heads}k{key_heads}d{dim}")
        }
    };
    let has_it = matches!(
        problem.op,
        TrainingOp::Activation(Activation::SwiGlu | Activation::GeGlu, _)
            | TrainingOp::Rope(Pairs::HalfSplit, _)
    );
    has_it.then(|| format!("{}_{}_{width}", problem.op, problem.dtype()))
}

fn unsupported(problem: &TrainingProblem, device: &DeviceInfo) -> Option<String> {
    if problem.dtype() != DType::Bf16 {
        return Some(format!("{}; exported for bf16 only", problem.dtype()));
    }
    let Some(name) = kernel_name(problem) else {
        return Some("Liger has no kernel for it".to_owned());
    };
    // Triton compiles integers that are multiples of 16 apart from others; RoPE's sequences are such.
    if let TrainingShape::Rope(shape) = problem.shape {
        if !shape.sequence.is_multiple_of(16) {
            return Some(format!(
                "sequences of {}; exported for multiples of 16",
                shape.sequence
            ));
        }
    }
    match triton::archive(Library::Liger, &device.arch) {
        Err(error) => Some(error.to_string()),
        Ok(archive) if archive.find(&name).is_none() => Some(format!(
            "{name} is not exported; the suites' widths and heads are"
        )),
        Ok(_) => None,
    }
}

fn bind(problem: &TrainingProblem, tensors: &Tensors, device: &DeviceInfo) -> Binding {
    let archive = triton::archive(Library::Liger, &device.arch).map_err(ContenderError::new)?;
    let name = kernel_name(problem).unwrap_or_default();
    let kernel = archive
        .find(&name)
        .ok_or_else(|| ContenderError::new(format!("no kernel {name}")))?;
    let loaded = Loaded::new(&archive, kernel).map_err(ContenderError::new)?;
    let (grid, arguments) = launch_of(problem, tensors, kernel.tiles, kernel.parameters.len())?;
    Ok(bound(Facts::new(), move |stream| {
        loaded.launch(grid, &arguments, stream)
    }))
}

/// Like `swiglu_forward` and its kin: one row (or a tile of one) or one token per program.
fn launch_of(
    problem: &TrainingProblem,
    tensors: &Tensors,
    tiles: u32,
    parameters: usize,
) -> Result<([u32; 3], Vec<Argument>), ContenderError> {
    let at = |name| tensors.address(name).map(Argument::Pointer);
    let int = |value: usize| {
        let fits = i32::try_from(value);
        fits.map(Argument::I32)
            .map_err(|_| ContenderError::new(format!("{value} does not fit in 32 bits")))
    };
    let count = |value: usize| {
        u32::try_from(value).map_err(|_| ContenderError::new(format!("{value} programs")))
    };
    match (problem.op, problem.shape) {
        (TrainingOp::Activation(activation, pass), TrainingShape::Rows(shape)) => {
            let RowShape { rows, columns } = shape;
            // gate, up, out; or out_gradient, gate, up, the latter two in place.
            let mut arguments = match pass {
                Pass::Forward => vec![at("gate")?, at("up")?, at("out")?],
                Pass::Backward => vec![at("out_gradient")?, at("gate")?, at("up")?],
            };
            arguments.push(int(columns)?);
            if activation == Activation::SwiGlu {
                arguments.push(Argument::F32(1.0));
            }
            // Tiled kernels take the width at run time.
            if arguments.len() < parameters {
                arguments.push(int(columns)?);
            }
            Ok(([count(rows)?, tiles, 1], arguments))
        }
        (TrainingOp::Rope(..), TrainingShape::Rope(shape)) => {
            let table_stride = int(shape.dim / 2)?;
            let arguments = vec![
                at("queries")?,
                int(shape.query_heads * shape.dim)?,
                at("keys")?,
                int(shape.key_heads * shape.dim)?,
                at("cos")?,
                table_stride,
                at("sin")?,
                table_stride,
                int(shape.sequence)?,
            ];
            Ok(([count(shape.tokens())?, 1, 1], arguments))
        }
        (op, shape) => Err(ContenderError::new(format!("{shape} does not fit {op}"))),
    }
}
