//! flash-linear-attention's Triton kernels, with the grid and arguments of `parallel_nsa_fwd` and
//! `parallel_nsa_compression_fwd`. Empty in builds without CUDA.
#![cfg(feature = "cuda")]

use std::cell::RefCell;
use std::collections::BTreeMap;

use contender::{
    bound, contender, Binding, ContenderError, Contenders, DeviceInfo, DeviceKind, Facts, Identity,
    Problem, Tensors,
};
use numeric::DType;
use triton::{Archive, Argument, Library, Loaded};
use workloads::{NsaOp, NsaProblem};

/// The fastest kernel, by operation and workload.
type Choices = RefCell<BTreeMap<String, String>>;

pub fn contenders() -> Contenders<NsaProblem> {
    contenders_among(String::new())
}

/// With a number of warps that is given, not tuned.
pub fn contenders_of_warps(warps: u32) -> Contenders<NsaProblem> {
    contenders_among(warps.to_string())
}

/// Of the kernels for a shape, those whose names go on with `warps`.
fn contenders_among(warps: String) -> Contenders<NsaProblem> {
    let region = "the op's one kernel, launched through the driver; warps are autotuned \
                  beforehand";
    let choices = Choices::default();
    let prefix = move |problem: &NsaProblem| Some(format!("{}{warps}", shape_prefix(problem)?));
    let same = prefix.clone();
    vec![contender(
        Identity::baseline("fla", "fla-core 0.6.0, triton 3.6.0", None, region),
        DeviceKind::Cuda,
        move |problem, device| unsupported(problem, prefix(problem), device),
        move |problem, tensors, device| bind(problem, same(problem), &choices, tensors, device),
    )]
}

/// Prefix of the kernel names for a shape; the number of warps follows.
fn shape_prefix(problem: &NsaProblem) -> Option<String> {
    let (shape, dtype) = (problem.shape, problem.dtype());
    let (branch, selected) = match problem.op {
        NsaOp::Selected => ("selected", format!("k{}", shape.selected)),
        NsaOp::Compressed => ("compressed", String::new()),
        NsaOp::Sliding | NsaOp::Gated => return None,
    };
    let (heads, groups, dim, block) = (shape.heads, shape.groups, shape.dim, shape.block);
    Some(format!(
        "{branch}_{dtype}_h{heads}g{groups}d{dim}n{block}{selected}_w"
    ))
}

fn unsupported(
    problem: &NsaProblem,
    prefix: Option<String>,
    device: &DeviceInfo,
) -> Option<String> {
    if problem.dtype() != DType::Bf16 {
        return Some(format!("{}; exported for bf16 only", problem.dtype()));
    }
    if !problem.shape.sequence.is_multiple_of(16) {
        return Some("exported for sequences of a multiple of 16".to_owned());
    }
    let Some(prefix) = prefix else {
        return Some(format!("the library has no kernel for {}", problem.op));
    };
    match triton::archive(Library::FlaNsa, &device.arch) {
        Err(error) => Some(error.to_string()),
        Ok(archive) => {
            let mut kernels = archive.kernels().iter();
            let exported = kernels.any(|kernel| kernel.name.starts_with(&prefix));
            (!exported).then(|| "exported only for the suites' sizes".to_owned())
        }
    }
}

fn bind(
    problem: &NsaProblem,
    prefix: Option<String>,
    choices: &Choices,
    tensors: &Tensors,
    device: &DeviceInfo,
) -> Binding {
    let archive = triton::archive(Library::FlaNsa, &device.arch).map_err(ContenderError::new)?;
    let prefix = prefix.ok_or_else(|| ContenderError::new("no such kernel"))?;
    let shape = problem.shape;
    let int = |value: usize| {
        let fits = i32::try_from(value);
        fits.map_err(|_| ContenderError::new(format!("{value} does not fit in 32 bits")))
    };
    let (sequence, programs) = (int(shape.sequence)?, int(shape.batch * shape.groups)?);
    let grid = [sequence as u32, 1, programs as u32];
    let branch = tensors.addresses(["queries", "keys", "values", "out", "lse"])?;
    let mut arguments = branch.map(Argument::Pointer).to_vec();
    arguments.push(Argument::F32(problem.scale));
    if problem.op == NsaOp::Selected {
        arguments.push(Argument::Pointer(tensors.address("blocks")?));
    }
    arguments.extend([Argument::I32(sequence), Argument::I32(sequence)]);
    let key = format!("{} {}", problem.op, problem.workload().name);
    let kernel = choose(choices, key, &archive, &prefix, grid, &arguments)?;
    let facts = Facts::from([("kernel".to_owned(), kernel.kernel().name.clone().into())]);
    Ok(bound(facts, move |stream| {
        kernel.launch(grid, &arguments, stream)
    }))
}

/// Like Triton's autotuner on a first call: runs each and takes the fastest. All sets of buffers
/// get the first one's choice. Waits for the device.
fn choose(
    choices: &Choices,
    key: String,
    archive: &Archive,
    prefix: &str,
    grid: [u32; 3],
    arguments: &[Argument],
) -> Result<Loaded, ContenderError> {
    /// The device's default stream: nothing else runs while contenders are bound.
    const STREAM: usize = 0;
    let load = |kernel| Loaded::new(archive, kernel).map_err(ContenderError::new);
    let chosen = choices.borrow().get(&key).cloned();
    if let Some(kernel) = chosen.and_then(|name| archive.find(&name)) {
        return load(kernel);
    }
    let kernels = archive.kernels().iter();
    let candidates = kernels
        .filter(|kernel| kernel.name.starts_with(prefix))
        .map(load)
        .collect::<Result<Vec<Loaded>, _>>()?;
    let fastest =
        triton::fastest(candidates, grid, arguments, STREAM).map_err(ContenderError::new)?;
    let (best, _) = fastest.ok_or_else(|| ContenderError::new("no kernel to choose from"))?;
    let name = best.kernel().name.clone();
    choices.borrow_mut().insert(key, name);
    Ok(best)
}
