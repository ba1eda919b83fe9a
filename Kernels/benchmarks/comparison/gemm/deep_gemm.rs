//! DeepGEMM, with the tile of its own heuristic.

use contender::{
    buildable, Binding, Bound, ContenderError, Contenders, DeviceInfo, DeviceKind, Facts, Identity,
    Problem, Stream, Tensors,
};
use deep_gemm::{Choice, Gemm, Layout, Operands, Plan, UniquePtr};
use numeric::DType;
use on_demand::{
    Built, GemmKernel, GemmLayout, GemmOperands, Missing, Recipe, Record, Store, Variant, Wanted,
};
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
        operands: operands(problem.dtype()).ok_or_else(|| {
            ContenderError::new(format!(
                "{} operands; it takes bf16, FP8, MXFP8 and MXFP4",
                problem.dtype()
            ))
        })?,
        tiled_scales: !matches!(problem.dtype(), DType::Bf16 | DType::F8E4M3),
        layout: match layout.kind {
            GroupKind::Dense => Layout::Dense,
            GroupKind::Contiguous => Layout::Contiguous,
            GroupKind::Masked => Layout::Masked,
        },
    })
}

/// What is built on demand for a device: for the interpreter it is PTX. The number of multiprocessors is compiled in,
/// for Blackwell a B200's.
fn built_for(device: &DeviceInfo) -> Option<&'static str> {
    match (device.kind, device.arch.as_str(), device.multiprocessors) {
        (DeviceKind::Cuda, "sm_90a", _) => Some("sm_90a"),
        (DeviceKind::Ptx, "sm_90a", _) => Some("compute_90a"),
        (DeviceKind::Cuda, "sm_100a", 148) => Some("sm_100a"),
        (DeviceKind::Ptx, "sm_100a", 148) => Some("compute_100a"),
        _ => None,
    }
}

/// Grouped kernels for sm_100a are those that are linked.
fn is_buildable(gemm: &Gemm, arch: &str) -> bool {
    arch.ends_with("_90a") || gemm.layout == Layout::Dense
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
        operands: match gemm.operands {
            Operands::Fp8 => GemmOperands::Fp8,
            Operands::Mxfp8 => GemmOperands::Mxfp8,
            Operands::Mxfp4 => GemmOperands::Mxfp4,
            _ => GemmOperands::Bf16,
        },
        layout,
        block_m: size(choice.block_m),
        block_n: size(choice.block_n),
        stages: size(choice.stages),
        cluster_m: size(choice.cluster_m),
        cluster_n: size(choice.cluster_n),
        transposed: choice.swaps,
    };
    // As in the library: for sm_100a dense kernels take them as arguments.
    let (n, k) = if arch.ends_with("_90a") {
        (gemm.n, gemm.k)
    } else {
        (0, 0)
    };
    Wanted::new(Recipe::DeepGemm, arch, Variant::Gemm { n, k, kernel })
}

fn found(gemm: &Gemm, choice: &Choice, arch: &str) -> Result<Built, Missing> {
    Store::of_user().find(&wanted(gemm, choice, arch))
}

fn operands(dtype: DType) -> Option<Operands> {
    match dtype {
        DType::Bf16 => Some(Operands::Bf16),
        DType::F8E4M3 | DType::Fp8Ue8m0 => Some(Operands::Fp8),
        DType::Mxfp8 => Some(Operands::Mxfp8),
        DType::Mxfp4 => Some(Operands::Mxfp4),
        _ => None,
    }
}

fn unsupported(problem: &GemmProblem, device: &DeviceInfo) -> Option<String> {
    let gemm = match gemm(problem, &Tensors::unbound(problem)) {
        Ok(gemm) => gemm,
        Err(error) => return Some(error.to_string()),
    };
    // On the usual card without asking it, for tables that are written where there is none.
    let choice = match (device.arch.as_str(), device.multiprocessors) {
        ("sm_90a", 132) => deep_gemm::choice_for_sm90(&gemm),
        _ => deep_gemm::choice(&gemm),
    };
    let choice = match choice {
        Ok(choice) if choice.is_linked => return None,
        Ok(choice) => choice,
        Err(error) => return Some(error.to_string()),
    };
    match built_for(device).filter(|arch| is_buildable(&gemm, arch)) {
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

/// Asks no device: every H100 and H200 that kernels are compiled for has the same choice, and every B200.
fn missing(problem: &GemmProblem, arch: &str) -> Option<Vec<String>> {
    let gemm = gemm(problem, &Tensors::unbound(problem)).ok()?;
    let choice = match arch {
        "sm_90a" => deep_gemm::choice_for_sm90(&gemm),
        "sm_100a" => deep_gemm::choice_for_b200(&gemm),
        _ => return None,
    };
    let choice = choice.ok()?;
    let lacks =
        !choice.is_linked && is_buildable(&gemm, arch) && found(&gemm, &choice, arch).is_err();
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
    Ok(Box::new(Ready { plan, facts }))
}

struct Ready {
    plan: UniquePtr<Plan>,
    facts: Facts,
}

impl Bound for Ready {
    fn enqueue(&mut self, Stream(stream): Stream) -> Result<(), ContenderError> {
        self.plan.enqueue(stream).map_err(ContenderError::new)
    }

    fn reread(&mut self) -> Result<(), ContenderError> {
        self.plan.reread().map_err(ContenderError::new)
    }

    fn facts(&self) -> Facts {
        self.facts.clone()
    }
}
