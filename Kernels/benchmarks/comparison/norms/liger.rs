//! Liger's Triton kernels, with the grids and arguments of its Python functions.

use column_sums::PartialSums;
use contender::{
    bound, buildable, Binding, ContenderError, Contenders, DeviceInfo, DeviceKind, Facts, Identity,
    Tensors,
};
use numeric::DType;
use on_demand::Variant;
use triton::{Argument, Library, Loaded};
use workloads::{NormOp, NormProblem};

use super::gradient_sums;

pub fn contenders() -> Contenders<NormProblem> {
    let identity = Identity::baseline(
        "liger",
        "liger-kernel 0.8.5, triton 3.6.0",
        None,
        "one kernel, launched through the driver, which also writes the statistics for a backward \
         pass; weight gradients with a kernel of ours that sums Liger's partials (torch's sum \
         there); fused add in place, without copies",
    );
    vec![buildable(
        identity,
        DeviceKind::Cuda,
        unsupported,
        missing,
        bind,
    )]
}

/// Columns must be a multiple of this: the kernels were compiled on that assumption.
const COLUMN_MULTIPLE: usize = 16;
/// Liger's default; no target has it.
const IGNORE_INDEX: i32 = -100;
/// From Liger's `calculate_settings`.
const MOST_COLUMNS: usize = 65536;

/// Wider rows of logits are read block by block: MAX_FUSED_SIZE of Liger's cross_entropy.py.
const MOST_LOGITS_PER_BLOCK: usize = 32768;
/// Up to blocks of this size Liger takes 16 rows per program.
const ROWS_TOGETHER_UP_TO: usize = 256;

/// Cross-entropy is one kernel in Liger, which overwrites the logits with their gradient and saves
/// no lse.
fn has_no_kernel(op: NormOp) -> bool {
    matches!(
        op,
        NormOp::CrossEntropyForward | NormOp::CrossEntropyBackward
    )
}

/// The tensors that are sums over all rows.
fn gradients(op: NormOp) -> &'static [&'static str] {
    match op {
        NormOp::RmsNormBackward => &["weight_gradient"],
        NormOp::LayerNormBackward => &["weight_gradient", "bias_gradient"],
        _ => &[],
    }
}

/// How many statistics per row a forward kernel saves.
fn statistics(op: NormOp) -> usize {
    match op {
        NormOp::RmsNormForward | NormOp::FusedAddRmsNorm => 1,
        NormOp::LayerNormForward => 2,
        _ => 0,
    }
}

/// Bytes of one statistic of all rows.
fn statistic_bytes(problem: &NormProblem) -> usize {
    problem.shape.rows.next_multiple_of(4) * size_of::<f32>()
}

/// What Liger's functions launch for a problem.
pub struct Launch {
    /// The name that the recipe gave the kernel.
    pub kernel: String,
    pub programs: usize,
    /// In a backward kernel that sums weight gradients; 1 elsewhere.
    pub rows_per_program: usize,
}

impl Launch {
    /// Or why there is none, regardless of what was exported.
    pub fn of(problem: &NormProblem, device: &DeviceInfo) -> Result<Self, String> {
        Self::on(problem, device.multiprocessors as usize)
    }

    fn on(problem: &NormProblem, multiprocessors: usize) -> Result<Self, String> {
        let (rows, columns) = (problem.shape.rows, problem.shape.columns);
        let types = problem.types;
        if types.activation != DType::Bf16 {
            return Err(format!("{}; exported for bf16 only", types.activation));
        }
        if has_no_kernel(problem.op) {
            return Err("Liger has no kernel for it; see cross_entropy_fwd_bwd".to_owned());
        }
        if columns > MOST_COLUMNS && !problem.op.is_cross_entropy() {
            return Err(format!("{columns} columns; Liger takes {MOST_COLUMNS}"));
        }
        if !columns.is_multiple_of(COLUMN_MULTIPLE) {
            return Err(format!(
                "{columns} columns; exported for multiples of {COLUMN_MULTIPLE}"
            ));
        }
        if i32::try_from(rows).is_err() {
            return Err(format!("{rows} rows; at most 2^31 - 1"));
        }
        let weight = if problem.op.has_weight() {
            format!("_w{}", types.weight)
        } else {
            String::new()
        };
        let (programs, rows_per_program, one) = if gradients(problem.op).is_empty() {
            (rows, 1, "")
        } else {
            let programs = multiprocessors;
            let rows_per_program = rows.div_ceil(programs);
            // Triton specialises a 1 to a constant.
            let one = if rows_per_program == 1 { "_one" } else { "" };
            (programs, rows_per_program, one)
        };
        let block = columns.next_power_of_two();
        if block <= ROWS_TOGETHER_UP_TO {
            return Err(format!(
                "{columns} columns; Liger takes rows together there, which is not exported"
            ));
        }
        let block = match problem.op.is_cross_entropy() {
            true => block.min(MOST_LOGITS_PER_BLOCK),
            false => block,
        };
        Ok(Self {
            kernel: format!("{}{one}_bf16{weight}_b{block}", problem.op),
            programs,
            rows_per_program,
        })
    }

    /// In the order of the kernel's parameters, without the constants.
    pub fn arguments(
        &self,
        problem: &NormProblem,
        tensors: &Tensors,
        extra: &Extra,
    ) -> Result<Vec<Argument>, ContenderError> {
        // `Launch::of` has checked that they fit.
        let rows = Argument::I32(problem.shape.rows as i32);
        let columns = Argument::I32(problem.shape.columns as i32);
        let epsilon = Argument::F32(problem.epsilon);
        // Offset added to the weight.
        let offset = Argument::F32(0.0);
        let mut arguments = Vec::new();
        for parameter in parameters(problem.op) {
            match parameter {
                // A row's stride is its width.
                Matrix(name) => {
                    arguments.extend([Argument::Pointer(tensors.address(name)?), columns]);
                }
                Vector(name) => arguments.push(Argument::Pointer(tensors.address(name)?)),
                Statistic(index) => {
                    let offset = index * statistic_bytes(problem);
                    arguments.push(Argument::Pointer(extra.statistics + offset));
                }
                Partial(index) => {
                    arguments.extend([Argument::Pointer(extra.partials[*index]), columns]);
                }
                Rows => arguments.push(rows),
                NoStride => arguments.push(Argument::I32(0)),
            }
        }
        arguments.push(columns);
        match problem.op {
            NormOp::RmsNormForward | NormOp::FusedAddRmsNorm => arguments.extend([epsilon, offset]),
            NormOp::LayerNormForward => arguments.push(epsilon),
            NormOp::RmsNormBackward => arguments.push(offset),
            // Rows that count, the sum of their weights, then the sum of the class weights.
            NormOp::CrossEntropyForwardBackward => {
                let ignored = Argument::I32(IGNORE_INDEX);
                arguments.extend([rows, rows, Argument::F32(0.0), ignored]);
            }
            _ => {}
        }
        if self.rows_per_program > 1 {
            arguments.push(Argument::I32(self.rows_per_program as i32));
        }
        Ok(arguments)
    }
}

/// The first parameters of a kernel.
enum Parameter {
    /// A tensor and its stride.
    Matrix(&'static str),
    Vector(&'static str),
    Statistic(usize),
    /// Partial sums of a weight's gradient, and their stride.
    Partial(usize),
    Rows,
    /// For outputs that are not requested.
    NoStride,
}
use Parameter::{Matrix, NoStride, Partial, Rows, Statistic, Vector};

fn parameters(op: NormOp) -> &'static [Parameter] {
    match op {
        NormOp::RmsNormForward => &[Matrix("out"), Matrix("x"), Vector("weight"), Statistic(0)],
        // Norm and sum, in place of x and the residual.
        NormOp::FusedAddRmsNorm => &[
            Matrix("x"),
            Matrix("residual"),
            Matrix("x"),
            Matrix("residual"),
            Vector("weight"),
            Statistic(0),
        ],
        NormOp::LayerNormForward => &[
            Matrix("out"),
            Matrix("x"),
            Vector("weight"),
            Vector("bias"),
            Statistic(0),
            Statistic(1),
        ],
        NormOp::RmsNormBackward => &[
            Matrix("out_gradient"),
            Matrix("x_gradient"),
            Matrix("x"),
            Vector("weight"),
            Vector("rstd"),
            Partial(0),
            Rows,
        ],
        NormOp::LayerNormBackward => &[
            Matrix("x"),
            Vector("weight"),
            Vector("mean"),
            Vector("rstd"),
            Matrix("x_gradient"),
            Partial(0),
            Partial(1),
            Matrix("out_gradient"),
            Rows,
        ],
        NormOp::SoftmaxForward => &[Matrix("out"), Matrix("x")],
        NormOp::SoftmaxBackward => &[Matrix("out_gradient"), Matrix("out"), Matrix("x_gradient")],
        // Strides of token accuracies and predictions.
        NormOp::CrossEntropyForwardBackward => &[
            Matrix("logits"),
            Vector("target"),
            Vector("loss"),
            NoStride,
            NoStride,
        ],
        // Launch::of has refused it.
        _ => &[],
    }
}

/// What a kernel writes besides the problem's tensors.
pub struct Extra {
    /// fp32 rstd, or mean and rstd, per row.
    pub statistics: usize,
    /// fp32 `[programs, columns]` per weight.
    pub partials: Vec<usize>,
}

fn unsupported(problem: &NormProblem, device: &DeviceInfo) -> Option<String> {
    let kernel = match Launch::of(problem, device) {
        Ok(launch) => launch.kernel,
        Err(reason) => return Some(reason),
    };
    let variant = Variant::Width(problem.shape.columns);
    let found = triton::archive_with(Library::Liger, &device.arch, &kernel, variant);
    found.err().map(|error| error.to_string())
}

fn missing(problem: &NormProblem, arch: &str) -> Option<Vec<String>> {
    // Of the kernels for a width, the number of multiprocessors only chooses between two that are built together.
    let launch = Launch::on(problem, 1).ok()?;
    let variant = Variant::Width(problem.shape.columns);
    triton::missing(Library::Liger, arch, &launch.kernel, variant)
}

fn bind(problem: &NormProblem, tensors: &Tensors, device: &DeviceInfo) -> Binding {
    let launch = Launch::of(problem, device).map_err(ContenderError::new)?;
    let variant = Variant::Width(problem.shape.columns);
    let archive = triton::archive_with(Library::Liger, &device.arch, &launch.kernel, variant)
        .map_err(ContenderError::new)?;
    let kernel = archive
        .find(&launch.kernel)
        .ok_or_else(|| ContenderError::new(format!("no kernel {}", launch.kernel)))?;
    let outs = gradients(problem.op).iter();
    let outs = outs
        .map(|name| tensors.address(name))
        .collect::<Result<Vec<_>, _>>()?;
    let sums = match outs.len() {
        0 => None,
        _ => Some(gradient_sums::allocate(problem, launch.programs, &outs)?),
    };
    let statistics = match statistics(problem.op) {
        0 => None,
        count => {
            let memory = column_sums::allocate_workspace(count * statistic_bytes(problem));
            Some(memory.map_err(ContenderError::new)?)
        }
    };
    let extra = Extra {
        statistics: statistics.as_ref().map_or(0, |memory| memory.address()),
        partials: sums.iter().flat_map(PartialSums::partials).collect(),
    };
    let loaded = Loaded::new(&archive, kernel).map_err(ContenderError::new)?;
    let arguments = launch.arguments(problem, tensors, &extra)?;
    let grid = [launch.programs as u32, 1, 1];
    let mut facts = Facts::from([("kernel".to_owned(), launch.kernel.into())]);
    if let Some(sha256) = &archive.built_sha256 {
        facts.insert("built_on_demand".to_owned(), sha256.clone().into());
    }
    if let Some(sums) = &sums {
        facts.insert("partial_rows".to_owned(), sums.rows().into());
    }
    Ok(bound(facts, move |stream| {
        let _alive = &statistics;
        let launched = loaded.launch(grid, &arguments, stream);
        launched.map_err(ContenderError::new)?;
        gradient_sums::enqueue(&sums, stream)
    }))
}
