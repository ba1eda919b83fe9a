//! Liger's Triton kernels, with the grids and arguments of its Python functions.

use contender::{
    Bound, Buffer, Contender, ContenderError, DeviceInfo, DeviceKind, Identity, Kind, Stream,
    Support,
};
use numeric::DType;
use reference::rope::Pairs;
use triton::{Argument, Library, Loaded};
use workloads::{
    Activation, Pass, RopeShape, RowShape, TrainingOp, TrainingProblem, TrainingShape,
};

struct Liger {
    identity: Identity,
}

pub fn contender() -> Box<dyn Contender<TrainingProblem>> {
    Box::new(Liger {
        identity: Identity {
            name: "liger".to_owned(),
            kind: Kind::Baseline,
            version: "liger-kernel 0.8.5, triton 3.6.0".to_owned(),
            artifact_sha256: None,
            libraries: Vec::new(),
            timed_region: "the op's one kernel, launched through the driver".to_owned(),
        },
    })
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
    has_it.then(|| format!("{}_{}_{width}", problem.op, problem.dtype))
}

impl Contender<TrainingProblem> for Liger {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn supports(&self, problem: &TrainingProblem, device: &DeviceInfo) -> Support {
        if device.kind != DeviceKind::Cuda {
            return Support::No("runs on CUDA only".to_owned());
        }
        if problem.dtype != DType::Bf16 {
            return Support::No(format!("no {}; exported for bf16 only", problem.dtype));
        }
        let Some(name) = kernel_name(problem) else {
            return Support::No("Liger has no kernel for it".to_owned());
        };
        match triton::archive(Library::Liger, &device.arch) {
            Err(error) => Support::No(error.to_string()),
            Ok(archive) if archive.find(&name).is_none() => Support::No(format!(
                "no {name}; exported for the suites' widths and heads"
            )),
            Ok(_) => Support::Yes,
        }
    }

    fn bind(
        &self,
        problem: &TrainingProblem,
        buffers: &[Buffer],
        device: &DeviceInfo,
    ) -> Result<Box<dyn Bound>, ContenderError> {
        let archive = triton::archive(Library::Liger, &device.arch).map_err(ContenderError::new)?;
        let name = kernel_name(problem).unwrap_or_default();
        let kernel = archive
            .find(&name)
            .ok_or_else(|| ContenderError::new(format!("no kernel {name}")))?;
        let loaded = Loaded::new(&archive, kernel).map_err(ContenderError::new)?;
        let (grid, arguments) = launch_of(problem, buffers, kernel.tiles, kernel.parameters.len())?;
        Ok(Box::new(BoundLiger {
            loaded,
            grid,
            arguments,
        }))
    }
}

/// As `swiglu_forward` and its like do: one row a program (or a row's tile), one token a program.
fn launch_of(
    problem: &TrainingProblem,
    buffers: &[Buffer],
    tiles: u32,
    parameters: usize,
) -> Result<([u32; 3], Vec<Argument>), ContenderError> {
    let at = |tensor: usize| Argument::Pointer(buffers[tensor].address);
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
                Pass::Forward => vec![at(0), at(1), at(2)],
                Pass::Backward => vec![at(2), at(0), at(1)],
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
                at(0),
                int(shape.query_heads * shape.dim)?,
                at(1),
                int(shape.key_heads * shape.dim)?,
                at(2),
                table_stride,
                at(3),
                table_stride,
                int(shape.sequence)?,
            ];
            Ok(([count(shape.tokens())?, 1, 1], arguments))
        }
        (op, shape) => Err(ContenderError::new(format!("{shape} is no shape of {op}"))),
    }
}

struct BoundLiger {
    loaded: Loaded,
    grid: [u32; 3],
    arguments: Vec<Argument>,
}

impl Bound for BoundLiger {
    fn enqueue(&mut self, Stream(stream): Stream) -> Result<(), ContenderError> {
        self.loaded
            .launch(self.grid, &self.arguments, stream)
            .map_err(ContenderError::new)
    }
}
