//! Liger's Triton kernels, with the grids and arguments of its Python functions.

use contender::{
    bound, buildable, Binding, ContenderError, Contenders, DeviceInfo, DeviceKind, Facts, Identity,
    Problem, Tensors,
};
use numeric::DType;
use on_demand::Variant;
use reference::rope::Pairs;
use triton::{Argument, Library, Loaded};
use workloads::{
    Activation, Pass, RopeShape, RowShape, TrainingOp, TrainingProblem, TrainingShape,
};

pub fn contenders() -> Contenders<TrainingProblem> {
    let region = "the op's one kernel, launched through the driver";
    let version = "liger-kernel 0.8.5, triton 3.6.0";
    let identity = Identity::baseline("liger", version, None, region);
    vec![buildable(
        identity,
        DeviceKind::Cuda,
        unsupported,
        missing,
        bind,
    )]
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
    let found = triton::archive_with(Library::Liger, &device.arch, &name, variant(problem));
    found.err().map(|error| error.to_string())
}

/// The sizes that are compiled in.
fn variant(problem: &TrainingProblem) -> Variant {
    match problem.shape {
        TrainingShape::Rows(shape) => Variant::Width(shape.columns),
        TrainingShape::Rope(shape) => Variant::Heads {
            query: shape.query_heads,
            key: shape.key_heads,
            dim: shape.dim,
        },
    }
}

fn missing(problem: &TrainingProblem, arch: &str) -> Option<Vec<String>> {
    let name = kernel_name(problem).filter(|_| problem.dtype() == DType::Bf16)?;
    triton::missing(Library::Liger, arch, &name, variant(problem))
}

fn bind(problem: &TrainingProblem, tensors: &Tensors, device: &DeviceInfo) -> Binding {
    let name = kernel_name(problem).unwrap_or_default();
    let archive = triton::archive_with(Library::Liger, &device.arch, &name, variant(problem))
        .map_err(ContenderError::new)?;
    let kernel = archive
        .find(&name)
        .ok_or_else(|| ContenderError::new(format!("no kernel {name}")))?;
    let loaded = Loaded::new(&archive, kernel).map_err(ContenderError::new)?;
    let (grid, arguments) = launch_of(problem, tensors, kernel.tiles, kernel.parameters.len())?;
    let built = archive.built_sha256.iter();
    let facts = built.map(|sha256| ("built_on_demand".to_owned(), sha256.clone().into()));
    Ok(bound(Facts::from_iter(facts), move |stream| {
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
