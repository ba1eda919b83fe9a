//! DeepGEMM, with the tile of its own heuristic.

use contender::{
    bound, buildable, Binding, ContenderError, Contenders, DeviceInfo, DeviceKind, Facts, Identity,
    Problem, Tensors,
};
use deep_gemm::{Choice, Gemm, Layout};
use numeric::DType;
use on_demand::{Built, GemmKernel, GemmLayout, Missing, Recipe, Record, Store, Variant, Wanted};
use workloads::{GemmProblem, GroupKind};

pub fn contenders() -> Contenders<GemmProblem> {
    let identity = Identity::baseline(
        "deep_gemm",
        deep_gemm::VERSION,
        Some(deep_gemm::WHEEL_SHA256.to_owned()),
        "one kernel with the library's own tile; FP8 operands and their scales are inputs",
    );
    vec![buildable(
        identity,
        DeviceKind::Cuda,
        unsupported,
        missing,
        bind,
    )]
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
        fp8: problem.is_scaled() || has_tiles(problem),
        tiled_scales: has_tiles(problem),
        layout: match layout.kind {
            GroupKind::Dense => Layout::Dense,
            GroupKind::Contiguous => Layout::Contiguous,
            GroupKind::Masked => Layout::Masked,
        },
    })
}

/// Kernels with n and k compiled in, as the library compiles them, are built on demand for this arch.
const BUILT_FOR: &str = "sm_90a";

/// What is built on demand for a device: for the interpreter it is PTX.
fn built_for(device: &DeviceInfo) -> Option<&'static str> {
    match (device.kind, device.arch == BUILT_FOR) {
        (DeviceKind::Cuda, true) => Some(BUILT_FOR),
        (DeviceKind::Ptx, true) => Some("compute_90a"),
        _ => None,
    }
}

/// What the library would compile for a problem.
fn wanted(gemm: &Gemm, choice: &Choice, arch: &str) -> Wanted {
    let layout = match gemm.layout {
        Layout::Dense => GemmLayout::Dense,
        Layout::Contiguous => GemmLayout::Contiguous,
        _ => GemmLayout::Masked(gemm.groups),
    };
    let size = |number: i32| usize::try_from(number).unwrap_or_default();
    let kernel = GemmKernel {
        fp8: gemm.fp8,
        layout,
        block_m: size(choice.block_m),
        block_n: size(choice.block_n),
        stages: size(choice.stages),
        cluster_m: size(choice.cluster_m),
        cluster_n: size(choice.cluster_n),
    };
    let (n, k) = (gemm.n, gemm.k);
    Wanted::new(Recipe::DeepGemm, arch, Variant::Gemm { n, k, kernel })
}

fn found(gemm: &Gemm, choice: &Choice, arch: &str) -> Result<Built, Missing> {
    Store::of_user().find(&wanted(gemm, choice, arch))
}

fn has_tiles(problem: &GemmProblem) -> bool {
    problem.dtype() == DType::Fp8Ue8m0
}

fn takes(dtype: DType) -> bool {
    matches!(dtype, DType::Bf16 | DType::F8E4M3 | DType::Fp8Ue8m0)
}

fn unsupported(problem: &GemmProblem, device: &DeviceInfo) -> Option<String> {
    let dtype = problem.dtype();
    if !takes(dtype) {
        return Some(format!("{dtype} operands; it takes bf16 or FP8"));
    }
    let gemm = match gemm(problem, &Tensors::unbound(problem)) {
        Ok(gemm) => gemm,
        Err(error) => return Some(error.to_string()),
    };
    let choice = match deep_gemm::choice(&gemm) {
        Ok(choice) if choice.is_linked => return None,
        Ok(choice) => choice,
        Err(error) => return Some(error.to_string()),
    };
    match built_for(device) {
        Some(arch) => {
            let missing = found(&gemm, &choice, arch).err();
            missing.map(|missing| missing.to_string())
        }
        None => Some(format!(
            "its choice for this shape, {}, is not one of the kernels compiled ahead of time",
            choice.words
        )),
    }
}

/// Asks no device: every H100 and H200 that kernels are compiled for has the same choice.
fn missing(problem: &GemmProblem, arch: &str) -> Option<Vec<String>> {
    if arch != BUILT_FOR || !takes(problem.dtype()) {
        return None;
    }
    let gemm = gemm(problem, &Tensors::unbound(problem)).ok()?;
    let choice = deep_gemm::choice_for_sm90(&gemm).ok()?;
    let lacks = !choice.is_linked && found(&gemm, &choice, arch).is_err();
    lacks.then(|| wanted(&gemm, &choice, arch).arguments())
}

fn bind(problem: &GemmProblem, tensors: &Tensors, device: &DeviceInfo) -> Binding {
    let gemm = gemm(problem, tensors)?;
    let choice = deep_gemm::choice(&gemm).map_err(ContenderError::new)?;
    let mut facts = Facts::from([
        ("tile".to_owned(), choice.tile.clone().into()),
        ("stages".to_owned(), choice.stages.into()),
        ("multicast".to_owned(), choice.multicast.clone().into()),
        ("shared_bytes".to_owned(), choice.shared_bytes.into()),
    ]);
    let plan = match built_for(device).filter(|_| !choice.is_linked) {
        None => deep_gemm::plan(&gemm),
        Some(arch) => {
            let built = found(&gemm, &choice, arch).map_err(ContenderError::new)?;
            let code = built.read("kernels.bin").map_err(ContenderError::new)?;
            let Record {
                archive_sha256,
                version,
                ..
            } = built.record;
            facts.insert("built_on_demand".to_owned(), archive_sha256.into());
            facts.insert("version".to_owned(), version.into());
            deep_gemm::plan_built(&gemm, &code)
        }
    };
    let plan = plan.map_err(ContenderError::new)?;
    Ok(bound(facts, move |stream| plan.enqueue(stream)))
}
