//! cuBLASLt: dense products with the fastest algorithm on its heuristic's list and with the first
//! one; groups one by one.

use std::cell::RefCell;
use std::collections::HashMap;

use contender::{
    bound, contender, Binding, ContenderError, Contenders, DeviceInfo, DeviceKind, Facts, Identity,
    Problem, Tensors,
};
use cublaslt::{Chosen, Library, Matmul, Operands, Product, Scales, Session, Type};
use numeric::DType;
use workloads::{GemmProblem, GroupKind, SCALE_BLOCK};

/// Choosing takes many runs: once per product, not once per set of buffers.
type Choices = RefCell<HashMap<Product, Chosen>>;

/// Dense products with the fastest algorithm that the heuristic proposes, and with its first, which
/// frameworks run (`torch.matmul`, for example).
pub fn contenders() -> Contenders<GemmProblem> {
    let contender = |name, chooses| {
        let libraries = Library::get().map_or(Vec::new(), |library| library.records().to_vec());
        let region = "the product's kernels, one call per group; choice of the algorithm, FP8 \
                      and FP4 operands and scales are not included";
        let choices = Choices::default();
        contender(
            Identity::loaded(name, libraries, region),
            DeviceKind::Cuda,
            move |problem, device| unsupported(problem, chooses, device),
            move |problem, tensors, device| bind(problem, chooses, &choices, tensors, device),
        )
    };
    vec![
        contender("cublaslt", true),
        contender("cublaslt_first", false),
    ]
}

fn dtype(problem: &GemmProblem) -> Option<Type> {
    match problem.dtype() {
        DType::Bf16 => Some(Type::Bf16),
        DType::F16 => Some(Type::F16),
        DType::F8E4M3 => Some(Type::Fp8),
        DType::Mxfp8 => Some(Type::Mxfp8),
        DType::Nvfp4 => Some(Type::Nvfp4),
        _ => None,
    }
}

fn unsupported(problem: &GemmProblem, chooses: bool, device: &DeviceInfo) -> Option<String> {
    let grouped = problem.layout.kind != GroupKind::Dense;
    if let Some(obstacle) = device.obstacle_to_machine_code() {
        return Some(obstacle);
    }
    if let Err(error) = Library::get() {
        return Some(error.to_string());
    }
    if !chooses && grouped {
        return Some("with groups, cublaslt already runs the heuristic's first choice".to_owned());
    }
    let Some(dtype) = dtype(problem) else {
        return Some(format!("it has no products of {}", problem.dtype()));
    };
    if let Some(obstacle) = dtype.obstacle(device.compute_capability) {
        return Some(obstacle.to_owned());
    }
    if !problem.is_scaled() {
        return None;
    }
    let (blocks, rows) = (problem.shape.k / SCALE_BLOCK, problem.layout.rows);
    if grouped {
        Some("a group's scales are not contiguous, which it requires".to_owned())
    } else if !blocks.is_multiple_of(4) || !rows.is_multiple_of(4) {
        Some(format!(
            "lines of {blocks} and {rows} scales; they must be multiples of 4"
        ))
    } else {
        None
    }
}

/// A group's. Tiles are laid out as the library reads them, and every group starts with a whole one.
fn scales(
    problem: &GemmProblem,
    tensors: &Tensors,
    group: usize,
) -> Result<Option<Scales>, ContenderError> {
    if !problem.is_scaled() && !problem.is_block_scaled() {
        return Ok(None);
    }
    let [a, b] = tensors.addresses(["a_scales", "b_scales"])?;
    let [before_a, before_b] = problem.scale_tiles_before(group);
    let of_tensors = match problem.dtype() {
        DType::Nvfp4 => Some(tensors.address("tensor_scale")?),
        _ => None,
    };
    Ok(Some(Scales {
        a: a + before_a,
        b: b + before_b,
        of_tensors,
    }))
}

fn bind(
    problem: &GemmProblem,
    chooses: bool,
    choices: &Choices,
    tensors: &Tensors,
    device: &DeviceInfo,
) -> Binding {
    let (n, k) = (problem.shape.n, problem.shape.k);
    let line_bytes = problem.statement().tensor("a").bytes() / problem.layout.rows;
    let out_size = problem.statement().tensor("out").dtype.size_bytes();
    let [a, b, out] = tensors.addresses(["a", "b", "out"])?;
    let dtype = dtype(problem).ok_or_else(|| ContenderError::new("an unsupported type"))?;
    let dense = problem.layout.kind == GroupKind::Dense;
    let session = Session::new().map_err(ContenderError::new)?;
    let mut calls = Vec::new();
    for (group, rows) in problem.layout.used_ranges() {
        let product = Product {
            m: rows.len(),
            n,
            k,
            dtype,
        };
        let operands = Operands {
            a: a + rows.start * line_bytes,
            b: b + group * n * line_bytes,
            out: out + rows.start * n * out_size,
            scales: scales(problem, tensors, group)?,
        };
        let matmul = Matmul::new(&session, product, operands).map_err(ContenderError::new)?;
        let known = choices.borrow().get(&product).copied();
        let chosen = match known {
            Some(chosen) => chosen,
            None if dense && chooses => matmul
                .choose(device.l2_bytes as usize)
                .map_err(ContenderError::new)?,
            None => matmul.first().map_err(ContenderError::new)?,
        };
        choices.borrow_mut().insert(product, chosen);
        calls.push((matmul, chosen));
    }
    libraries::only_recorded().map_err(ContenderError::new)?;
    let mut facts = Facts::from([("calls".to_owned(), calls.len().into())]);
    if let Some((_, chosen)) = calls.first().filter(|_| dense) {
        facts.extend([
            ("algorithm".to_owned(), chosen.id.into()),
            ("tile_id".to_owned(), chosen.tile.into()),
            ("stages_id".to_owned(), chosen.stages.into()),
            ("split_k".to_owned(), chosen.split_k.into()),
            ("rank".to_owned(), chosen.rank.into()),
            ("proposals".to_owned(), chosen.proposals.into()),
            ("choosing_us".to_owned(), chosen.us.into()),
            ("choosing_first_us".to_owned(), chosen.first_us.into()),
            ("workspace_bytes".to_owned(), chosen.workspace_bytes.into()),
        ]);
    }
    Ok(bound(facts, move |stream| {
        let mut calls = calls.iter();
        calls.try_for_each(|(matmul, chosen)| matmul.enqueue(chosen, stream))
    }))
}
