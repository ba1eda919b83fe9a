//! Quack's kernels, compiled ahead of time: Kernels/baselines/quack/README.md says from what.

use column_sums::{PartialSums, Workspace};
use contender::{
    Bound, Buffer, Contender, ContenderError, DeviceInfo, DeviceKind, Facts, Identity, Kind,
    Stream, Support,
};
use quack::{Kernel, Tensor, UniquePtr};
use workloads::{NormOp, NormProblem};

use super::gradient_sums;

struct Quack {
    identity: Identity,
}

pub fn contenders() -> Vec<Box<dyn Contender<NormProblem>>> {
    let artifacts = quack::artifacts();
    let Some(first) = artifacts.first() else {
        return Vec::new();
    };
    vec![Box::new(Quack {
        identity: Identity {
            name: "quack".to_owned(),
            kind: Kind::Baseline,
            version: first.version.clone(),
            // A build for both architectures has an archive for each; the arch of the row says which ran.
            artifact_sha256: Some(first.sha256.clone()).filter(|_| artifacts.len() == 1),
            libraries: Vec::new(),
            timed_region: "one kernel; weight gradients with a kernel of ours that sums Quack's \
                           partials (torch's sum there); fused add in place, without copies"
                .to_owned(),
        },
    })]
}

/// The name of the exported kernel for a problem, whether or not there is one.
fn kernel_name(problem: &NormProblem) -> String {
    let op = match problem.op {
        NormOp::FusedAddRmsNorm => "add_rmsnorm_fwd",
        op => op.name(),
    };
    let types = problem.types;
    let weight = if problem.op.has_weight() {
        format!("_w{}", types.weight)
    } else {
        String::new()
    };
    let columns = problem.shape.columns;
    format!("{op}_{}{weight}_n{columns}", types.activation)
}

fn major(device: &DeviceInfo) -> i32 {
    device
        .compute_capability
        .map_or(0, |(major, _)| major as i32)
}

impl Contender<NormProblem> for Quack {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn supports(&self, problem: &NormProblem, device: &DeviceInfo) -> Support {
        let name = kernel_name(problem);
        if device.kind != DeviceKind::Cuda {
            Support::No("runs on CUDA only".to_owned())
        } else if !quack::artifacts()
            .iter()
            .any(|artifact| artifact.major == major(device))
        {
            Support::No(format!("no kernels for {} in this build", device.arch))
        } else if !quack::has_kernel(major(device), &name) {
            Support::No(format!(
                "{name} is not among the exported kernels: bf16 at the widths of the suites"
            ))
        } else if i32::try_from(problem.shape.rows).is_err() {
            Support::No(format!("{} rows; at most 2^31 - 1", problem.shape.rows))
        } else {
            Support::Yes
        }
    }

    fn bind(
        &self,
        problem: &NormProblem,
        buffers: &[Buffer],
        device: &DeviceInfo,
    ) -> Result<Box<dyn Bound>, ContenderError> {
        let name = kernel_name(problem);
        let kernel = quack::load_kernel(major(device), &name);
        let columns = problem.shape.columns;
        let partial_rows = quack::partial_rows(major(device), device.multiprocessors, columns);
        let mut bound = BoundQuack {
            kernel: kernel.map_err(ContenderError::new)?,
            tensors: Vec::new(),
            scalars: scalars(problem, partial_rows),
            gradients: None,
            lse: None,
            name,
        };
        let rows = i32::try_from(problem.shape.rows).map_err(ContenderError::new)?;
        let matrix = |address| Tensor {
            address,
            rows,
            stride: columns as i64,
        };
        // Of one value a row; also for weights, where the kernel looks at the address alone.
        let vector = |address| Tensor {
            address,
            rows,
            stride: 1,
        };
        let at = |tensor: usize| buffers[tensor].address;
        let partials = |sums: &PartialSums| -> Vec<Tensor> {
            let partial = |address| Tensor {
                address,
                rows: partial_rows as i32,
                stride: columns as i64,
            };
            sums.partials().map(partial).collect()
        };
        bound.tensors = match problem.op {
            NormOp::RmsNormForward => vec![matrix(at(0)), vector(at(1)), matrix(at(2))],
            NormOp::LayerNormForward => {
                vec![matrix(at(0)), vector(at(1)), vector(at(2)), matrix(at(3))]
            }
            // x, weight, residual, then where the norm and the sum go: over x and the residual.
            NormOp::FusedAddRmsNorm => vec![
                matrix(at(0)),
                vector(at(2)),
                matrix(at(1)),
                matrix(at(0)),
                matrix(at(1)),
            ],
            NormOp::SoftmaxForward => vec![matrix(at(0)), matrix(at(1))],
            // The gradient comes before the output.
            NormOp::SoftmaxBackward => vec![matrix(at(1)), matrix(at(0)), matrix(at(2))],
            NormOp::CrossEntropyForward => {
                vec![matrix(at(0)), vector(at(1)), vector(at(2)), vector(at(3))]
            }
            NormOp::CrossEntropyBackward => vec![
                matrix(at(0)),
                vector(at(1)),
                vector(at(3)),
                matrix(at(4)),
                vector(at(2)),
            ],
            // The gradient over the logits; the lse, which nobody asked for, elsewhere.
            NormOp::CrossEntropyForwardBackward => {
                let lse = column_sums::allocate_workspace(rows as usize * size_of::<f32>());
                let lse = bound.lse.insert(lse.map_err(ContenderError::new)?);
                let (logits, lse) = (matrix(at(0)), vector(lse.address()));
                vec![logits, vector(at(1)), vector(at(2)), lse, logits]
            }
            NormOp::RmsNormBackward => {
                let gradients = gradient_sums::allocate(problem, partial_rows, &[at(5)])?;
                let mut tensors = vec![
                    matrix(at(0)),
                    vector(at(1)),
                    matrix(at(2)),
                    vector(at(3)),
                    matrix(at(4)),
                ];
                tensors.extend(partials(&gradients));
                bound.gradients = Some(gradients);
                tensors
            }
            // rstd comes before the mean.
            NormOp::LayerNormBackward => {
                let gradients = gradient_sums::allocate(problem, partial_rows, &[at(6), at(7)])?;
                let mut tensors = vec![matrix(at(0)), vector(at(1)), matrix(at(2))];
                tensors.extend([vector(at(4)), vector(at(3)), matrix(at(5))]);
                tensors.extend(partials(&gradients));
                bound.gradients = Some(gradients);
                tensors
            }
        };
        Ok(Box::new(bound))
    }
}

/// The bits of what follows the tensors.
fn scalars(problem: &NormProblem, partial_rows: usize) -> Vec<u32> {
    /// Quack's default; no target has it.
    const IGNORE_INDEX: i32 = -100;
    match problem.op {
        NormOp::RmsNormForward | NormOp::LayerNormForward | NormOp::FusedAddRmsNorm => {
            vec![problem.epsilon.to_bits()]
        }
        NormOp::RmsNormBackward | NormOp::LayerNormBackward => vec![partial_rows as u32],
        NormOp::SoftmaxForward | NormOp::SoftmaxBackward => Vec::new(),
        NormOp::CrossEntropyForward
        | NormOp::CrossEntropyBackward
        | NormOp::CrossEntropyForwardBackward => vec![IGNORE_INDEX as u32],
    }
}

struct BoundQuack {
    kernel: UniquePtr<Kernel>,
    tensors: Vec<Tensor>,
    scalars: Vec<u32>,
    gradients: Option<PartialSums>,
    lse: Option<UniquePtr<Workspace>>,
    name: String,
}

impl Bound for BoundQuack {
    fn enqueue(&mut self, Stream(stream): Stream) -> Result<(), ContenderError> {
        self.kernel
            .launch(&self.tensors, &self.scalars, stream)
            .map_err(ContenderError::new)?;
        if let Some(gradients) = &self.gradients {
            gradients.enqueue(stream).map_err(ContenderError::new)?;
        }
        Ok(())
    }

    fn facts(&self) -> Facts {
        let mut facts = Facts::from([("kernel".to_owned(), self.name.clone().into())]);
        if let Some(gradients) = &self.gradients {
            facts.insert("partial_rows".to_owned(), gradients.rows().into());
        }
        facts
    }
}
