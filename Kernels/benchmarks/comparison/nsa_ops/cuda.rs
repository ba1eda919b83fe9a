//! CUDA contenders: our kernels, flash-linear-attention, and the plain kernels that serve as the
//! gate's full reference.

use contender::{
    Bound, Buffer, Contender, ContenderError, DeviceInfo, DeviceKind, Identity, Kind, Stream,
    Support,
};
use nsa::{Banded, Branch, Dtype, Gated, Reach, Selected, Variant};
use numeric::DType;
use workloads::{nsa_gated_tensor, nsa_tensor, NsaOp, NsaProblem};

struct CudaNsa {
    identity: Identity,
    variant: Variant,
}

pub fn contenders() -> Vec<Box<dyn Contender<NsaProblem>>> {
    let contender = |name: &str, kind, variant| -> Box<dyn Contender<_>> {
        let identity = Identity::in_tree(name, kind, "the op's one kernel");
        Box::new(CudaNsa { identity, variant })
    };
    vec![
        contender("ours", Kind::Own, Variant::Tuned),
        super::fla::contender(),
        contender("plain_fp32", Kind::Reference, Variant::Plain),
    ]
}

/// Products beyond which the plain kernel would take too long to be a reference.
const PLAIN_FLOPS: f64 = 3e11;

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
        if problem.op == NsaOp::Gated {
            let (dim, multiple) = (shape.dim, nsa::GATED_DIM_MULTIPLE);
            return (!dim.is_multiple_of(multiple))
                .then(|| format!("dim is {dim}; multiples of {multiple} are supported"));
        }
        if problem.dtype == DType::F32 {
            return Some("no f32; f16 and bf16 only".to_owned());
        }
        if !nsa::DIMS.contains(&shape.dim) {
            return Some(format!("dim is {}; 64 and 128 are supported", shape.dim));
        }
        let per_group = shape.heads_per_group();
        if per_group > nsa::MAX_HEADS_PER_GROUP {
            let most = nsa::MAX_HEADS_PER_GROUP;
            return Some(format!(
                "{per_group} heads in a group; up to {most} are supported"
            ));
        }
        if problem.op != NsaOp::Selected {
            return None;
        }
        if shape.selected > nsa::MAX_SELECTED {
            let (selected, most) = (shape.selected, nsa::MAX_SELECTED);
            return Some(format!(
                "{selected} selected blocks; up to {most} are supported"
            ));
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
        let op = op(problem, buffers)?;
        let variant = self.variant;
        Ok(Box::new(BoundNsa { op, variant }))
    }
}

/// An operation with the addresses of its tensors.
enum Op {
    Selected(Selected),
    Banded(Banded),
    Gated(Gated),
}

fn op(problem: &NsaProblem, buffers: &[Buffer]) -> Result<Op, ContenderError> {
    let at = |tensor: usize| buffers[tensor].address;
    let shape = problem.shape;
    let dtype = dtype(problem.dtype).ok_or_else(|| ContenderError::new("unsupported type"))?;
    let branch = || Branch {
        dtype,
        tokens: shape.tokens(),
        sequence: shape.sequence,
        heads: shape.heads,
        groups: shape.groups,
        dim: shape.dim,
        scale: problem.scale,
        queries: at(nsa_tensor::QUERIES),
        keys: at(nsa_tensor::KEYS),
        values: at(nsa_tensor::VALUES),
        out: at(nsa_tensor::OUT),
        lse: at(nsa_tensor::LSE),
    };
    let banded = |reach, size| Banded {
        branch: branch(),
        reach,
        size,
    };
    Ok(match problem.op {
        NsaOp::Selected => Op::Selected(Selected {
            branch: branch(),
            block: shape.block,
            selected: shape.selected,
            blocks: at(nsa_tensor::BLOCKS),
        }),
        NsaOp::Compressed => Op::Banded(banded(Reach::Compressed, shape.block)),
        NsaOp::Sliding => Op::Banded(banded(Reach::Window, shape.window)),
        NsaOp::Gated => Op::Gated(Gated {
            dtype,
            rows: shape.tokens() * shape.heads,
            dim: shape.dim,
            outputs: nsa_gated_tensor::OUTPUTS.map(at),
            gates: nsa_gated_tensor::GATES.map(at),
            out: at(nsa_gated_tensor::OUT),
        }),
    })
}

struct BoundNsa {
    op: Op,
    variant: Variant,
}

impl Bound for BoundNsa {
    fn enqueue(&mut self, Stream(stream): Stream) -> Result<(), ContenderError> {
        match &self.op {
            Op::Selected(params) => nsa::selected(params, self.variant, stream),
            Op::Banded(params) => nsa::banded(params, self.variant, stream),
            Op::Gated(params) => nsa::gated(params, self.variant, stream),
        }
        .map_err(ContenderError::new)
    }
}
