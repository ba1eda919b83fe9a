//! DeepGEMM, with the tile of its own heuristic.

use contender::{
    bound, contender, Binding, ContenderError, Contenders, DeviceInfo, DeviceKind, Facts, Identity,
    Problem, Tensors,
};
use deep_gemm::{Gemm, Layout};
use numeric::DType;
use workloads::{GemmProblem, GroupKind};

pub fn contenders() -> Contenders<GemmProblem> {
    let identity = Identity::baseline(
        "deep_gemm",
        deep_gemm::VERSION,
        Some(deep_gemm::WHEEL_SHA256.to_owned()),
        "one kernel with the library's own tile; FP8 operands and their scales are inputs",
    );
    vec![contender(identity, DeviceKind::Cuda, unsupported, bind)]
}

fn gemm(problem: &GemmProblem, tensors: &Tensors) -> Result<Gemm, ContenderError> {
    let layout = &problem.layout;
    let index = layout.index_name();
    Ok(Gemm {
        a: tensors.address("a")?,
        b: tensors.address("b")?,
        out: tensors.address("out")?,
        a_scales: tensors.address_or_null("a_scales"),
        b_scales: tensors.address_or_null("b_scales"),
        index: index.map_or(Ok(0), |name| tensors.address(name))?,
        m: layout.room(),
        n: problem.shape.n,
        k: problem.shape.k,
        groups: layout.groups(),
        expected_m: layout.used_rows().div_ceil(layout.groups()),
        fp8: problem.is_scaled(),
        layout: match layout.kind {
            GroupKind::Dense => Layout::Dense,
            GroupKind::Contiguous => Layout::Contiguous,
            GroupKind::Masked => Layout::Masked,
        },
    })
}

fn unsupported(problem: &GemmProblem, _device: &DeviceInfo) -> Option<String> {
    let dtype = problem.dtype();
    if !matches!(dtype, DType::Bf16 | DType::F8E4M3) {
        return Some(format!("{dtype} operands; it takes bf16 or FP8"));
    }
    let choice = gemm(problem, &Tensors::unbound(problem))
        .and_then(|gemm| deep_gemm::choice(&gemm).map_err(ContenderError::new));
    choice.err().map(|error| error.to_string())
}

fn bind(problem: &GemmProblem, tensors: &Tensors, _device: &DeviceInfo) -> Binding {
    let gemm = gemm(problem, tensors)?;
    let plan = deep_gemm::plan(&gemm).map_err(ContenderError::new)?;
    let choice = deep_gemm::choice(&gemm).map_err(ContenderError::new)?;
    let facts = Facts::from([
        ("tile".to_owned(), choice.tile.into()),
        ("stages".to_owned(), choice.stages.into()),
        ("multicast".to_owned(), choice.multicast.into()),
        ("shared_bytes".to_owned(), choice.shared_bytes.into()),
    ]);
    Ok(bound(facts, move |stream| plan.enqueue(stream)))
}
