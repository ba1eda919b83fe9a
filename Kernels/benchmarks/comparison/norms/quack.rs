//! Quack's kernels, compiled ahead of time; see Kernels/baselines/quack/README.md for how.

use column_sums::PartialSums;
use contender::{
    bound, released, Binding, Contender, ContenderError, Contenders, DeviceInfo, DeviceKind, Facts,
    Identity, Pinned, Releases, Tensors,
};
use numeric::DType;
use on_demand::{CuteLibrary, Missing, Recipe, Variant, Wanted};
use quack::Tensor;
use workloads::{NormOp, NormProblem};

use super::gradient_sums;

pub fn contenders() -> Contenders<NormProblem> {
    let artifacts = quack::artifacts();
    let Some(first) = artifacts.first() else {
        return Vec::new();
    };
    // A build for both architectures has one archive each; the row's arch says which one ran.
    let sha256 = Some(first.sha256.clone()).filter(|_| artifacts.len() == 1);
    let region = "one kernel; weight gradients with a kernel of ours that sums Quack's partials \
                  (torch's sum there); fused add in place, without copies";
    let identity = Identity::baseline("quack", &first.version, sha256, region);
    vec![of_release(identity, None)]
}

/// The contender of a release that the lock pins; none if it does not.
fn at(release: &str) -> Option<Box<dyn Contender<NormProblem>>> {
    let own = contenders().pop()?.identity().clone();
    let identity = own.at(release);
    if release == own.release() {
        return Some(of_release(identity, None));
    }
    let others = &Recipe::Quack.releases()?.others;
    let release = others.iter().find(|known| *known == release)?;
    Some(of_release(identity, Some(release)))
}

/// Of another release there is what is built on demand.
fn of_release(identity: Identity, release: Release) -> Box<dyn Contender<NormProblem>> {
    let releases = Recipe::Quack.releases().map(|known| Releases {
        pinned: Pinned {
            others: known.others.clone(),
            pin: known.pin_command(),
        },
        at,
    });
    released(
        identity,
        DeviceKind::Cuda,
        move |problem, device| unsupported(problem, device, release),
        move |problem, arch| missing(problem, arch, release),
        move |problem, tensors, device| bind(problem, tensors, device, release),
        releases,
    )
}

/// Another one than that of the archives.
type Release = Option<&'static str>;

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

/// Where the kernel of a problem is.
enum Source {
    Linked,
    Built(&'static CuteLibrary),
}

/// The variant that has the problem's kernel; the recipe exports bf16 only.
fn variant(problem: &NormProblem, arch: &str, release: Release) -> Option<Wanted> {
    let wanted = Wanted::new(Recipe::Quack, arch, Variant::Width(problem.shape.columns));
    let wanted = wanted.of_release(release);
    let builds = problem.types.activation == DType::Bf16 && Recipe::Quack.version(arch).is_some();
    builds.then_some(wanted)
}

fn opened(
    problem: &NormProblem,
    arch: &str,
    release: Release,
) -> Option<Result<&'static CuteLibrary, Missing>> {
    variant(problem, arch, release).map(|wanted| CuteLibrary::open(&wanted))
}

/// The kernel, or why there is none.
fn source(problem: &NormProblem, device: &DeviceInfo, release: Release) -> Result<Source, String> {
    let name = kernel_name(problem);
    if release.is_none() && quack::has_kernel(major(device), &name) {
        return Ok(Source::Linked);
    }
    let library = opened(problem, &device.arch, release)
        .ok_or_else(|| format!("{name}: the recipe exports bf16 activations only"))?
        .map_err(|missing| missing.to_string())?;
    library.kernel(&name).map(|_| Source::Built(library))
}

fn missing(problem: &NormProblem, arch: &str, release: Release) -> Option<Vec<String>> {
    let linked = [("sm_90a", 9), ("sm_100a", 10)]
        .into_iter()
        .any(|(sm, major)| sm == arch && quack::has_kernel(major, &kernel_name(problem)));
    let linked = linked && release.is_none();
    let lacks = !linked && opened(problem, arch, release).is_some_and(|library| library.is_err());
    lacks.then(|| variant(problem, arch, release).map(|wanted| wanted.arguments()))?
}

fn unsupported(problem: &NormProblem, device: &DeviceInfo, release: Release) -> Option<String> {
    let rows = problem.shape.rows;
    let mut artifacts = quack::artifacts().into_iter();
    if !artifacts.any(|artifact| artifact.major == major(device)) {
        Some(format!("this build has no kernels for {}", device.arch))
    } else if let Err(reason) = source(problem, device, release) {
        Some(reason)
    } else {
        let fits = i32::try_from(rows).is_ok();
        (!fits).then(|| format!("{rows} rows; the limit is 2^31 - 1"))
    }
}

/// The matrices that a kernel takes and the vectors, one value per row or column; in its order.
#[derive(Clone, Copy)]
enum Parameter {
    Matrix(&'static str),
    /// One value per row; also for weights, of which the kernel only uses the address.
    Vector(&'static str),
    /// The lse, which is not requested.
    Lse,
}

fn parameters(op: NormOp) -> &'static [Parameter] {
    use Parameter::{Lse, Matrix, Vector};
    match op {
        NormOp::RmsNormForward => &[Matrix("x"), Vector("weight"), Matrix("out")],
        NormOp::LayerNormForward => &[Matrix("x"), Vector("weight"), Vector("bias"), Matrix("out")],
        // The outputs of norm and sum come last: in place of x and the residual.
        NormOp::FusedAddRmsNorm => &[
            Matrix("x"),
            Vector("weight"),
            Matrix("residual"),
            Matrix("x"),
            Matrix("residual"),
        ],
        NormOp::SoftmaxForward => &[Matrix("x"), Matrix("out")],
        NormOp::SoftmaxBackward => &[Matrix("out_gradient"), Matrix("out"), Matrix("x_gradient")],
        NormOp::CrossEntropyForward => &[
            Matrix("logits"),
            Vector("target"),
            Vector("loss"),
            Vector("lse"),
        ],
        NormOp::CrossEntropyBackward => &[
            Matrix("logits"),
            Vector("target"),
            Vector("loss_gradient"),
            Matrix("logits_gradient"),
            Vector("lse"),
        ],
        // The gradient overwrites the logits.
        NormOp::CrossEntropyForwardBackward => &[
            Matrix("logits"),
            Vector("target"),
            Vector("loss"),
            Lse,
            Matrix("logits"),
        ],
        // Partial sums of the weights' gradients follow.
        NormOp::RmsNormBackward => &[
            Matrix("x"),
            Vector("weight"),
            Matrix("out_gradient"),
            Vector("rstd"),
            Matrix("x_gradient"),
        ],
        NormOp::LayerNormBackward => &[
            Matrix("x"),
            Vector("weight"),
            Matrix("out_gradient"),
            Vector("rstd"),
            Vector("mean"),
            Matrix("x_gradient"),
        ],
    }
}

fn bind(
    problem: &NormProblem,
    tensors: &Tensors,
    device: &DeviceInfo,
    release: Release,
) -> Binding {
    let name = kernel_name(problem);
    let source = source(problem, device, release).map_err(ContenderError::new)?;
    let kernel = match source {
        Source::Linked => {
            quack::load_kernel(major(device), &name).map_err(|error| error.to_string())
        }
        Source::Built(library) => quack::load_built(library, &name),
    };
    let kernel = kernel.map_err(ContenderError::new)?;
    let columns = problem.shape.columns;
    let partial_rows = quack::partial_rows(major(device), device.multiprocessors, columns);
    let rows = i32::try_from(problem.shape.rows).map_err(ContenderError::new)?;
    let tensor = |address, rows, stride: usize| Tensor {
        address,
        rows,
        stride: stride as i64,
    };
    let (mut arguments, mut lse) = (Vec::new(), None);
    for parameter in parameters(problem.op) {
        arguments.push(match parameter {
            Parameter::Matrix(name) => tensor(tensors.address(name)?, rows, columns),
            Parameter::Vector(name) => tensor(tensors.address(name)?, rows, 1),
            Parameter::Lse => {
                let memory = column_sums::allocate_workspace(rows as usize * size_of::<f32>());
                let memory = lse.insert(memory.map_err(ContenderError::new)?);
                tensor(memory.address(), rows, 1)
            }
        });
    }
    let outs = match problem.op {
        NormOp::RmsNormBackward => vec![tensors.address("weight_gradient")?],
        NormOp::LayerNormBackward => tensors
            .addresses(["weight_gradient", "bias_gradient"])?
            .to_vec(),
        _ => Vec::new(),
    };
    let gradients = match outs.len() {
        0 => None,
        _ => Some(gradient_sums::allocate(problem, partial_rows, &outs)?),
    };
    let partials = gradients.iter().flat_map(PartialSums::partials);
    arguments.extend(partials.map(|address| tensor(address, partial_rows as i32, columns)));
    let scalars = scalars(problem, partial_rows);
    let mut facts = Facts::from([("kernel".to_owned(), name.into())]);
    if let Source::Built(library) = source {
        let sha256 = library.built.record.archive_sha256.clone();
        facts.insert("built_on_demand".to_owned(), sha256.into());
        let version = library.built.record.version.clone();
        facts.insert("version".to_owned(), version.into());
    }
    if let Some(gradients) = &gradients {
        facts.insert("partial_rows".to_owned(), gradients.rows().into());
    }
    Ok(bound(facts, move |stream| {
        let _alive = &lse;
        let launched = kernel.launch(&arguments, &scalars, stream);
        launched.map_err(ContenderError::new)?;
        gradient_sums::enqueue(&gradients, stream)
    }))
}

/// The bits of the arguments after the tensors.
fn scalars(problem: &NormProblem, partial_rows: usize) -> Vec<u32> {
    /// Quack's default; no target has it.
    const IGNORE_INDEX: i32 = -100;
    match problem.op {
        NormOp::RmsNormForward | NormOp::LayerNormForward | NormOp::FusedAddRmsNorm => {
            vec![problem.epsilon.to_bits()]
        }
        NormOp::RmsNormBackward | NormOp::LayerNormBackward => vec![partial_rows as u32],
        NormOp::CrossEntropyForward
        | NormOp::CrossEntropyBackward
        | NormOp::CrossEntropyForwardBackward => vec![IGNORE_INDEX as u32],
        _ => Vec::new(),
    }
}
