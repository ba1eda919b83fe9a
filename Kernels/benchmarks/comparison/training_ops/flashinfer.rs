//! FlashInfer's gated activations and RoPE with a cache of cosines and sines.

use contender::{
    Bound, Buffer, Contender, ContenderError, DeviceInfo, DeviceKind, Identity, Kind, Stream,
    Support,
};
use elementwise::{ActAndMul, Gate, Rope, RopeTables, UniquePtr};
use numeric::DType;
use reference::activation::Unit;
use reference::rope::Pairs;
use workloads::{Pass, TrainingOp, TrainingProblem, TrainingShape};

struct FlashInfer {
    identity: Identity,
}

pub fn contender() -> Box<dyn Contender<TrainingProblem>> {
    Box::new(FlashInfer {
        identity: Identity {
            name: "flashinfer".to_owned(),
            kind: Kind::Baseline,
            version: elementwise::VERSION.to_owned(),
            artifact_sha256: Some(elementwise::WHEEL_SHA256.to_owned()),
            libraries: Vec::new(),
            timed_region: "the op's one kernel; RoPE's cache is laid out beforehand".to_owned(),
        },
    })
}

impl Contender<TrainingProblem> for FlashInfer {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn supports(&self, problem: &TrainingProblem, device: &DeviceInfo) -> Support {
        if device.kind != DeviceKind::Cuda {
            return Support::No("runs on CUDA only".to_owned());
        }
        if problem.dtype != DType::Bf16 {
            return Support::No(format!("{} is not built in; bf16 is", problem.dtype));
        }
        match (problem.op, problem.shape) {
            (TrainingOp::Packed(_), TrainingShape::Rows(shape)) => {
                let (columns, multiple) = (shape.columns, elementwise::COLUMN_MULTIPLE);
                if columns.is_multiple_of(multiple) {
                    Support::Yes
                } else {
                    Support::No(format!("{columns} columns; multiples of {multiple} only"))
                }
            }
            (TrainingOp::Rope(_, Pass::Forward), TrainingShape::Rope(shape)) => {
                if elementwise::ROPE_DIMS.contains(&shape.dim) {
                    Support::Yes
                } else {
                    Support::No(format!("dim is {}; 64 and 128 are built in", shape.dim))
                }
            }
            _ => Support::No("FlashInfer has no kernel for it".to_owned()),
        }
    }

    fn bind(
        &self,
        problem: &TrainingProblem,
        buffers: &[Buffer],
        _device: &DeviceInfo,
    ) -> Result<Box<dyn Bound>, ContenderError> {
        let at = |tensor: usize| buffers[tensor].address;
        match (problem.op, problem.shape) {
            (TrainingOp::Packed(unit), TrainingShape::Rows(shape)) => {
                let gate = match unit {
                    Unit::Silu => Gate::Silu,
                    Unit::GeluTanh => Gate::GeluTanh,
                    Unit::Gelu => Gate::Gelu,
                };
                Ok(Box::new(BoundActivation(ActAndMul {
                    gate,
                    input: at(0),
                    out: at(1),
                    rows: shape.rows,
                    columns: shape.columns,
                })))
            }
            (TrainingOp::Rope(pairs, _), TrainingShape::Rope(shape)) => {
                let int = |value: usize| {
                    let fits = u32::try_from(value);
                    fits.map_err(|_| ContenderError::new(format!("{value} needs 32 bits")))
                };
                let (tokens, dim) = (int(shape.tokens())?, int(shape.dim)?);
                let tables =
                    elementwise::rope_tables(at(2), at(3), int(shape.sequence)?, dim, tokens)
                        .map_err(ContenderError::new)?;
                let rope = Rope {
                    queries: at(0),
                    keys: at(1),
                    tokens,
                    query_heads: int(shape.query_heads)?,
                    key_heads: int(shape.key_heads)?,
                    dim,
                    interleaved: pairs == Pairs::Interleaved,
                };
                Ok(Box::new(BoundRope { rope, tables }))
            }
            (op, _) => Err(ContenderError::new(format!("no kernel for {op}"))),
        }
    }
}

struct BoundActivation(ActAndMul);

impl Bound for BoundActivation {
    fn enqueue(&mut self, Stream(stream): Stream) -> Result<(), ContenderError> {
        elementwise::act_and_mul(&self.0, stream).map_err(ContenderError::new)
    }
}

struct BoundRope {
    rope: Rope,
    tables: UniquePtr<RopeTables>,
}

impl Bound for BoundRope {
    fn enqueue(&mut self, Stream(stream): Stream) -> Result<(), ContenderError> {
        elementwise::rope(&self.rope, &self.tables, stream).map_err(ContenderError::new)
    }
}
