//! Liger's Triton kernels, with the grids and arguments of its Python functions.

use column_sums::{PartialSums, UniquePtr, Workspace};
use contender::{
    Bound, Buffer, Contender, ContenderError, DeviceInfo, DeviceKind, Facts, Identity, Kind,
    Stream, Support,
};
use numeric::DType;
use triton::{Argument, Library, Loaded};
use workloads::{NormOp, NormProblem};

use super::gradient_sums;

struct Liger {
    identity: Identity,
}

pub fn contender() -> Box<dyn Contender<NormProblem>> {
    Box::new(Liger {
        identity: Identity {
            name: "liger".to_owned(),
            kind: Kind::Baseline,
            version: "liger-kernel 0.8.5, triton 3.6.0".to_owned(),
            artifact_sha256: None,
            libraries: Vec::new(),
            timed_region: "one kernel, launched through the driver, which also writes the \
                           statistics for a backward pass; weight gradients with a kernel of ours \
                           that sums Liger's partials (torch's sum there); fused add in place, \
                           without copies"
                .to_owned(),
        },
    })
}

/// Multiples that rows must be of: the kernels were compiled on that promise.
const COLUMN_MULTIPLE: usize = 16;
/// Liger's default; no target has it.
const IGNORE_INDEX: i32 = -100;
/// Of Liger's `calculate_settings`.
const MOST_COLUMNS: usize = 65536;

/// Cross-entropy is one kernel in Liger, which leaves its gradient in place of the logits and saves no lse.
fn has_no_kernel(op: NormOp) -> bool {
    matches!(
        op,
        NormOp::CrossEntropyForward | NormOp::CrossEntropyBackward
    )
}

/// The tensors that are sums over all rows.
fn gradients(op: NormOp) -> &'static [usize] {
    match op {
        NormOp::RmsNormBackward => &[5],
        NormOp::LayerNormBackward => &[6, 7],
        _ => &[],
    }
}

/// How many statistics of a row a forward kernel saves.
fn statistics(op: NormOp) -> usize {
    match op {
        NormOp::RmsNormForward | NormOp::FusedAddRmsNorm => 1,
        NormOp::LayerNormForward => 2,
        _ => 0,
    }
}

/// The bytes of one of them.
fn statistic_bytes(problem: &NormProblem) -> usize {
    problem.shape.rows.next_multiple_of(4) * size_of::<f32>()
}

/// What Liger's functions launch for a problem.
pub struct Launch {
    /// The name that the recipe gave the kernel.
    pub kernel: String,
    pub programs: usize,
    /// Of a backward kernel that adds up weight gradients; 1 elsewhere.
    pub rows_per_program: usize,
}

impl Launch {
    /// Or why there is none, whatever was exported.
    pub fn of(problem: &NormProblem, device: &DeviceInfo) -> Result<Self, String> {
        let (rows, columns) = (problem.shape.rows, problem.shape.columns);
        let types = problem.types;
        if types.activation != DType::Bf16 {
            return Err(format!("no {}; exported for bf16 only", types.activation));
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
            let programs = device.multiprocessors as usize;
            let rows_per_program = rows.div_ceil(programs);
            // Triton makes a constant of a 1.
            let one = if rows_per_program == 1 { "_one" } else { "" };
            (programs, rows_per_program, one)
        };
        let block = columns.next_power_of_two();
        Ok(Self {
            kernel: format!("{}{one}_bf16{weight}_b{block}", problem.op),
            programs,
            rows_per_program,
        })
    }

    /// In the order of the kernel's parameters, without those that are constants.
    pub fn arguments(&self, problem: &NormProblem, memory: &Addresses) -> Vec<Argument> {
        let at = |tensor: usize| Argument::Pointer(memory.tensors[tensor]);
        let statistic =
            |index: usize| Argument::Pointer(memory.statistics + index * statistic_bytes(problem));
        let partial = |index: usize| Argument::Pointer(memory.partials[index]);
        // `Launch::of` has seen that they fit.
        let rows = Argument::I32(problem.shape.rows as i32);
        let columns = Argument::I32(problem.shape.columns as i32);
        let epsilon = Argument::F32(problem.epsilon);
        // Added to the weight.
        let offset = Argument::F32(0.0);
        // A row's stride is its width.
        let mut arguments = match problem.op {
            NormOp::RmsNormForward => vec![at(2), columns, at(0), columns, at(1), statistic(0)],
            NormOp::FusedAddRmsNorm => {
                // Norm and sum, over x and the residual.
                let outputs = [at(0), columns, at(1), columns];
                let inputs = [at(0), columns, at(1), columns, at(2), statistic(0)];
                [&outputs[..], &inputs].concat()
            }
            NormOp::LayerNormForward => {
                let matrices = [at(3), columns, at(0), columns];
                [&matrices[..], &[at(1), at(2), statistic(0), statistic(1)]].concat()
            }
            NormOp::RmsNormBackward => {
                let matrices = [at(2), columns, at(4), columns, at(0), columns];
                [&matrices[..], &[at(1), at(3), partial(0), columns, rows]].concat()
            }
            NormOp::LayerNormBackward => {
                let inputs = [at(0), columns, at(1), at(3), at(4)];
                let outputs = [at(5), columns, partial(0), columns, partial(1), columns];
                [&inputs[..], &outputs, &[at(2), columns, rows]].concat()
            }
            NormOp::SoftmaxForward => vec![at(1), columns, at(0), columns],
            NormOp::SoftmaxBackward => vec![at(1), columns, at(0), columns, at(2), columns],
            // Strides of token accuracies and predictions, which are not asked for.
            NormOp::CrossEntropyForwardBackward => {
                vec![
                    at(0),
                    columns,
                    at(1),
                    at(2),
                    Argument::I32(0),
                    Argument::I32(0),
                ]
            }
            NormOp::CrossEntropyForward | NormOp::CrossEntropyBackward => Vec::new(),
        };
        arguments.push(columns);
        match problem.op {
            NormOp::RmsNormForward | NormOp::FusedAddRmsNorm => arguments.extend([epsilon, offset]),
            NormOp::LayerNormForward => arguments.push(epsilon),
            NormOp::RmsNormBackward => arguments.push(offset),
            // Rows that count, and the sum of their weights, then of the weights of classes.
            NormOp::CrossEntropyForwardBackward => {
                let ignored = Argument::I32(IGNORE_INDEX);
                arguments.extend([rows, rows, Argument::F32(0.0), ignored]);
            }
            _ => {}
        }
        if self.rows_per_program > 1 {
            arguments.push(Argument::I32(self.rows_per_program as i32));
        }
        arguments
    }
}

/// Where the tensors of a problem are, and what else a kernel writes.
pub struct Addresses {
    pub tensors: Vec<usize>,
    /// fp32 rstd, or mean and rstd, of each row.
    pub statistics: usize,
    /// fp32 `[programs, columns]` of each weight.
    pub partials: Vec<usize>,
}

impl Contender<NormProblem> for Liger {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn supports(&self, problem: &NormProblem, device: &DeviceInfo) -> Support {
        if device.kind != DeviceKind::Cuda {
            return Support::No("runs on CUDA only".to_owned());
        }
        let launch = match Launch::of(problem, device) {
            Ok(launch) => launch,
            Err(reason) => return Support::No(reason),
        };
        match triton::archive(Library::Liger, &device.arch) {
            Err(error) => Support::No(error.to_string()),
            Ok(archive) if archive.find(&launch.kernel).is_none() => Support::No(format!(
                "no {}; exported for the blocks of the suites",
                launch.kernel
            )),
            Ok(_) => Support::Yes,
        }
    }

    fn bind(
        &self,
        problem: &NormProblem,
        buffers: &[Buffer],
        device: &DeviceInfo,
    ) -> Result<Box<dyn Bound>, ContenderError> {
        let launch = Launch::of(problem, device).map_err(ContenderError::new)?;
        let archive = triton::archive(Library::Liger, &device.arch).map_err(ContenderError::new)?;
        let kernel = archive
            .find(&launch.kernel)
            .ok_or_else(|| ContenderError::new(format!("no kernel {}", launch.kernel)))?;
        let outs: Vec<usize> = gradients(problem.op)
            .iter()
            .map(|&tensor| buffers[tensor].address)
            .collect();
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
        let memory = Addresses {
            tensors: buffers.iter().map(|buffer| buffer.address).collect(),
            statistics: statistics.as_ref().map_or(0, |memory| memory.address()),
            partials: sums.iter().flat_map(PartialSums::partials).collect(),
        };
        Ok(Box::new(BoundLiger {
            loaded: Loaded::new(&archive, kernel).map_err(ContenderError::new)?,
            arguments: launch.arguments(problem, &memory),
            programs: launch.programs as u32,
            sums,
            _statistics: statistics,
        }))
    }
}

struct BoundLiger {
    loaded: Loaded,
    programs: u32,
    arguments: Vec<Argument>,
    sums: Option<PartialSums>,
    _statistics: Option<UniquePtr<Workspace>>,
}

impl Bound for BoundLiger {
    fn enqueue(&mut self, Stream(stream): Stream) -> Result<(), ContenderError> {
        self.loaded
            .launch([self.programs, 1, 1], &self.arguments, stream)
            .map_err(ContenderError::new)?;
        if let Some(sums) = &self.sums {
            sums.enqueue(stream).map_err(ContenderError::new)?;
        }
        Ok(())
    }

    fn facts(&self) -> Facts {
        let name = self.loaded.kernel().name.clone();
        let mut facts = Facts::from([("kernel".to_owned(), name.into())]);
        if let Some(sums) = &self.sums {
            facts.insert("partial_rows".to_owned(), sums.rows().into());
        }
        facts
    }
}
