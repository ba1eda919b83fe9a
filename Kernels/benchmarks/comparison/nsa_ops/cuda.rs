//! CUDA contenders: our kernel, flash-linear-attention, and the plain kernel that serves as the gate's full reference.

use contender::{
    Bound, Buffer, Contender, ContenderError, DeviceInfo, DeviceKind, Identity, Kind, Stream,
    Support,
};
use nsa::{Dtype, Selected, Variant};
use numeric::DType;
use workloads::{nsa_tensor, NsaProblem};

struct CudaNsa {
    identity: Identity,
    variant: Variant,
}

pub fn contenders() -> Vec<Box<dyn Contender<NsaProblem>>> {
    let contender = |name: &str, kind, variant| -> Box<dyn Contender<_>> {
        let identity = Identity {
            name: name.to_owned(),
            kind,
            version: "in tree".to_owned(),
            artifact_sha256: None,
            timed_region: "the op's one kernel".to_owned(),
        };
        Box::new(CudaNsa { identity, variant })
    };
    vec![
        contender("ours", Kind::Own, Variant::Tuned),
        super::fla::contender(),
        contender("plain_fp32", Kind::Reference, Variant::Plain),
    ]
}

/// Products beyond which the plain kernel would take too long to be a reference.
const PLAIN_FLOPS: f64 = 1e11;

fn dtype(dtype: DType) -> Option<Dtype> {
    match dtype {
        DType::F32 => Some(Dtype::F32),
        DType::F16 => Some(Dtype::F16),
        DType::Bf16 => Some(Dtype::Bf16),
        _ => None,
    }
}

impl CudaNsa {
    /// Why it cannot do the problem.
    fn obstacle(&self, problem: &NsaProblem) -> Option<String> {
        let shape = problem.shape;
        if self.variant == Variant::Plain {
            let flops = contender::Problem::cost(problem).flops;
            return (flops > PLAIN_FLOPS).then(|| format!("too slow for {flops:.1e} operations"));
        }
        if problem.dtype == DType::F32 {
            return Some("no f32; f16 and bf16 only".to_owned());
        }
        if !nsa::DIMS.contains(&shape.dim) {
            return Some(format!("dim is {}; 64 and 128 are supported", shape.dim));
        }
        let most = [
            (
                "heads in a group",
                shape.heads_per_group(),
                nsa::MAX_HEADS_PER_GROUP,
            ),
            ("selected blocks", shape.selected, nsa::MAX_SELECTED),
        ];
        for (what, value, most) in most {
            if value > most {
                return Some(format!("{value} {what}; up to {most} are supported"));
            }
        }
        (!shape.block.is_multiple_of(nsa::BLOCK_MULTIPLE))
            .then(|| format!("block is {}; multiples of 16 are supported", shape.block))
    }
}

impl Contender<NsaProblem> for CudaNsa {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn supports(&self, problem: &NsaProblem, device: &DeviceInfo) -> Support {
        if device.kind != DeviceKind::Cuda {
            return Support::No("runs on CUDA only".to_owned());
        }
        if dtype(problem.dtype).is_none() {
            return Support::No(format!("no {}; f32, f16 and bf16 only", problem.dtype));
        }
        self.obstacle(problem).map_or(Support::Yes, Support::No)
    }

    fn bind(
        &self,
        problem: &NsaProblem,
        buffers: &[Buffer],
        _device: &DeviceInfo,
    ) -> Result<Box<dyn Bound>, ContenderError> {
        let at = |tensor: usize| buffers[tensor].address;
        let shape = problem.shape;
        let selected = Selected {
            dtype: dtype(problem.dtype).ok_or_else(|| ContenderError::new("unsupported type"))?,
            tokens: shape.tokens(),
            sequence: shape.sequence,
            heads: shape.heads,
            groups: shape.groups,
            dim: shape.dim,
            block: shape.block,
            selected: shape.selected,
            scale: problem.scale,
            queries: at(nsa_tensor::QUERIES),
            keys: at(nsa_tensor::KEYS),
            values: at(nsa_tensor::VALUES),
            blocks: at(nsa_tensor::BLOCKS),
            out: at(nsa_tensor::OUT),
            lse: at(nsa_tensor::LSE),
        };
        Ok(Box::new(BoundNsa {
            selected,
            variant: self.variant,
        }))
    }
}

struct BoundNsa {
    selected: Selected,
    variant: Variant,
}

impl Bound for BoundNsa {
    fn enqueue(&mut self, Stream(stream): Stream) -> Result<(), ContenderError> {
        nsa::launch(&self.selected, self.variant, stream).map_err(ContenderError::new)
    }
}
