//! DeepGEMM, with the tile that it chooses itself.

use contender::{
    Bound, Buffer, Contender, ContenderError, DeviceInfo, DeviceKind, Facts, Identity, Kind,
    Stream, Support,
};
use deep_gemm::{Gemm, Layout, Plan};
use numeric::DType;
use workloads::{GemmProblem, GroupKind};

struct DeepGemm {
    identity: Identity,
}

pub fn contender() -> Box<dyn Contender<GemmProblem>> {
    Box::new(DeepGemm {
        identity: Identity {
            name: "deep_gemm".to_owned(),
            kind: Kind::Baseline,
            version: deep_gemm::VERSION.to_owned(),
            artifact_sha256: Some(deep_gemm::WHEEL_SHA256.to_owned()),
            libraries: Vec::new(),
            timed_region: "one kernel with the library's own tile; FP8 operands and their scales \
                           are inputs"
                .to_owned(),
        },
    })
}

/// The product without its tensors.
fn shape(problem: &GemmProblem) -> Gemm {
    let layout = &problem.layout;
    let (m, kind) = match layout.kind {
        GroupKind::Dense => (layout.rows, Layout::Dense),
        GroupKind::Contiguous => (layout.rows, Layout::Contiguous),
        GroupKind::Masked => (layout.rows / layout.groups(), Layout::Masked),
    };
    Gemm {
        a: 0,
        b: 0,
        out: 0,
        a_scales: 0,
        b_scales: 0,
        index: 0,
        m,
        n: problem.shape.n,
        k: problem.shape.k,
        groups: layout.groups(),
        expected_m: layout.used_rows().div_ceil(layout.groups()),
        fp8: problem.dtype == DType::F8E4M3,
        layout: kind,
    }
}

impl Contender<GemmProblem> for DeepGemm {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn supports(&self, problem: &GemmProblem, device: &DeviceInfo) -> Support {
        if device.kind != DeviceKind::Cuda {
            Support::No("runs on CUDA only".to_owned())
        } else if !matches!(problem.dtype, DType::Bf16 | DType::F8E4M3) {
            Support::No(format!("no {} operands; bf16 and FP8 only", problem.dtype))
        } else if let Err(error) = deep_gemm::choice(&shape(problem)) {
            Support::No(error.to_string())
        } else {
            Support::Yes
        }
    }

    fn bind(
        &self,
        problem: &GemmProblem,
        buffers: &[Buffer],
        _device: &DeviceInfo,
    ) -> Result<Box<dyn Bound>, ContenderError> {
        let at = |tensor: usize| buffers[tensor].address;
        let scale = |tensor| if problem.is_scaled() { at(tensor) } else { 0 };
        let gemm = Gemm {
            a: at(GemmProblem::A),
            b: at(GemmProblem::B),
            out: at(GemmProblem::OUT),
            a_scales: scale(GemmProblem::A_SCALES),
            b_scales: scale(GemmProblem::B_SCALES),
            index: problem.index_tensor().map_or(0, at),
            ..shape(problem)
        };
        let plan = deep_gemm::plan(&gemm).map_err(ContenderError::new)?;
        Ok(Box::new(BoundGemm { gemm, plan }))
    }
}

struct BoundGemm {
    gemm: Gemm,
    plan: deep_gemm::UniquePtr<Plan>,
}

impl Bound for BoundGemm {
    fn enqueue(&mut self, Stream(stream): Stream) -> Result<(), ContenderError> {
        self.plan.enqueue(stream).map_err(ContenderError::new)
    }

    fn facts(&self) -> Facts {
        let Ok(choice) = deep_gemm::choice(&self.gemm) else {
            return Facts::new();
        };
        Facts::from([
            ("tile".to_owned(), choice.tile.into()),
            ("stages".to_owned(), choice.stages.into()),
            ("multicast".to_owned(), choice.multicast.into()),
            ("shared_bytes".to_owned(), choice.shared_bytes.into()),
        ])
    }
}
