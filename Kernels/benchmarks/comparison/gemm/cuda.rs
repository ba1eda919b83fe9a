//! CUDA contenders: our kernels, and the plain one that serves as the gate's full reference.

use contender::{
    Bound, Buffer, Contender, ContenderError, DeviceInfo, DeviceKind, Facts, Identity, Kind,
    Problem, Stream, Support,
};
use gemm::{Dtype, Gemm, Layout, Variant};
use numeric::DType;
use workloads::{GemmProblem, GroupKind};

/// The plain kernel runs at about a hundredth of the tensor cores' rate: beyond this many
/// operations it would take longer than everything else together.
const MOST_PLAIN_FLOPS: f64 = 4e12;

struct CudaGemm {
    identity: Identity,
    variant: Variant,
}

pub fn contenders() -> Vec<Box<dyn Contender<GemmProblem>>> {
    let contender = |name: &str, kind, variant| -> Box<dyn Contender<_>> {
        let identity = Identity::in_tree(
            name,
            kind,
            "one kernel; FP8 operands and their scales are inputs",
        );
        Box::new(CudaGemm { identity, variant })
    };
    vec![
        contender("ours", Kind::Own, Variant::Tuned),
        contender("ours_mma_sync", Kind::Own, Variant::Portable),
        contender("plain_fp32", Kind::Reference, Variant::Plain),
    ]
}

/// The product without its tensors.
fn shape(problem: &GemmProblem) -> Gemm {
    let layout = &problem.layout;
    let used_groups = layout.used_groups().max(1);
    let (rows, kind) = match layout.kind {
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
        rows,
        n: problem.shape.n,
        k: problem.shape.k,
        groups: layout.groups(),
        dtype: match problem.dtype {
            DType::F16 => Dtype::F16,
            DType::F8E4M3 => Dtype::Fp8,
            _ => Dtype::Bf16,
        },
        layout: kind,
        expected_rows: layout.used_rows().div_ceil(used_groups),
    }
}

fn bound(problem: &GemmProblem, buffers: &[Buffer]) -> Gemm {
    let at = |tensor: usize| buffers[tensor].address;
    let scale = |tensor| if problem.is_scaled() { at(tensor) } else { 0 };
    Gemm {
        a: at(GemmProblem::A),
        b: at(GemmProblem::B),
        out: at(GemmProblem::OUT),
        a_scales: scale(GemmProblem::A_SCALES),
        b_scales: scale(GemmProblem::B_SCALES),
        index: problem.index_tensor().map_or(0, at),
        ..shape(problem)
    }
}

impl Contender<GemmProblem> for CudaGemm {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn supports(&self, problem: &GemmProblem, device: &DeviceInfo) -> Support {
        if device.kind != DeviceKind::Cuda {
            return Support::No("runs on CUDA only".to_owned());
        }
        let hopper = matches!(device.compute_capability, Some((9, _)));
        if self.variant == Variant::Portable && !hopper {
            return Support::No("ours is this kernel on this architecture".to_owned());
        }
        if let Err(error) = gemm::check(&shape(problem)) {
            return Support::No(error.to_string());
        }
        let flops = problem.cost().flops;
        if self.variant == Variant::Plain && flops > MOST_PLAIN_FLOPS {
            return Support::No(format!(
                "{flops:.1e} operations; at most {MOST_PLAIN_FLOPS:.0e}"
            ));
        }
        Support::Yes
    }

    fn bind(
        &self,
        problem: &GemmProblem,
        buffers: &[Buffer],
        _device: &DeviceInfo,
    ) -> Result<Box<dyn Bound>, ContenderError> {
        Ok(Box::new(BoundGemm {
            gemm: bound(problem, buffers),
            variant: self.variant,
        }))
    }
}

struct BoundGemm {
    gemm: Gemm,
    variant: Variant,
}

impl Bound for BoundGemm {
    fn enqueue(&mut self, Stream(stream): Stream) -> Result<(), ContenderError> {
        gemm::enqueue(&self.gemm, self.variant, stream).map_err(ContenderError::new)
    }

    fn facts(&self) -> Facts {
        let Ok(choice) = gemm::choice(&self.gemm, self.variant) else {
            return Facts::new();
        };
        let tile = format!("{}x{}", choice.tile_rows, choice.tile_columns);
        Facts::from([
            ("kernel".to_owned(), choice.kernel.into()),
            ("tile".to_owned(), tile.into()),
            ("stages".to_owned(), choice.stages.into()),
            ("split_k".to_owned(), choice.split.into()),
            ("blocks".to_owned(), choice.blocks.into()),
        ])
    }
}
