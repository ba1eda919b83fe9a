//! FlashInfer's gated activations, and its RoPE with cached cosines and sines.

use contender::{
    bound, contender, Binding, ContenderError, Contenders, DeviceInfo, DeviceKind, Facts, Identity,
    Problem, Tensors,
};
use elementwise::{ActAndMul, Gate, Rope};
use numeric::DType;
use reference::activation::Unit;
use reference::rope::Pairs;
use workloads::{Pass, TrainingOp, TrainingProblem, TrainingShape};

pub fn contenders() -> Contenders<TrainingProblem> {
    let identity = Identity::baseline(
        "flashinfer",
        elementwise::VERSION,
        Some(elementwise::WHEEL_SHA256.to_owned()),
        "the op's one kernel; RoPE's cache is laid out beforehand",
    );
    vec![contender(identity, DeviceKind::Cuda, unsupported, bind)]
}

fn unsupported(problem: &TrainingProblem, _device: &DeviceInfo) -> Option<String> {
    if problem.dtype() != DType::Bf16 {
        return Some(format!("{} is not built in; use bf16", problem.dtype()));
    }
    match (problem.op, problem.shape) {
        (TrainingOp::Packed(_), TrainingShape::Rows(shape)) => {
            let (columns, multiple) = (shape.columns, elementwise::COLUMN_MULTIPLE);
            let fits = columns.is_multiple_of(multiple);
            (!fits).then(|| format!("{columns} columns; it takes multiples of {multiple}"))
        }
        (TrainingOp::Rope(_, Pass::Forward), TrainingShape::Rope(shape)) => {
            let built = elementwise::ROPE_DIMS.contains(&shape.dim);
            (!built).then(|| format!("dim is {}; 64 and 128 are built in", shape.dim))
        }
        _ => Some("FlashInfer has no kernel for it".to_owned()),
    }
}

fn bind(problem: &TrainingProblem, tensors: &Tensors, _device: &DeviceInfo) -> Binding {
    match (problem.op, problem.shape) {
        (TrainingOp::Packed(unit), TrainingShape::Rows(shape)) => {
            let activation = ActAndMul {
                gate: match unit {
                    Unit::Silu => Gate::Silu,
                    Unit::GeluTanh => Gate::GeluTanh,
                    Unit::Gelu => Gate::Gelu,
                },
                input: tensors.address("gate_and_up")?,
                out: tensors.address("out")?,
                rows: shape.rows,
                columns: shape.columns,
            };
            Ok(bound(Facts::new(), move |stream| {
                elementwise::act_and_mul(&activation, stream)
            }))
        }
        (TrainingOp::Rope(pairs, _), TrainingShape::Rope(shape)) => {
            let int = |value: usize| {
                let fits = u32::try_from(value);
                fits.map_err(|_| ContenderError::new(format!("{value} does not fit in 32 bits")))
            };
            let (tokens, dim) = (int(shape.tokens())?, int(shape.dim)?);
            let [cos, sin] = tensors.addresses(["cos", "sin"])?;
            let tables = elementwise::rope_tables(cos, sin, int(shape.sequence)?, dim, tokens)
                .map_err(ContenderError::new)?;
            let rope = Rope {
                queries: tensors.address("queries")?,
                keys: tensors.address("keys")?,
                tokens,
                query_heads: int(shape.query_heads)?,
                key_heads: int(shape.key_heads)?,
                dim,
                interleaved: pairs == Pairs::Interleaved,
            };
            Ok(bound(Facts::new(), move |stream| {
                elementwise::rope(&rope, &tables, stream)
            }))
        }
        (op, _) => Err(ContenderError::new(format!("no kernel for {op}"))),
    }
}
