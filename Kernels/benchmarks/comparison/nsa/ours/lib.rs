//! Our kernels.

use contender::{ContenderError, Contenders, Problem, Tensors};
use cxx::Exception;
use nsa::{Nsa, Op};
use our_contender::{dtype, Ours, Variant};
use workloads::{NsaOp, NsaProblem};

const FAMILY: Ours<NsaProblem, Nsa, Exception> = Ours {
    timed: "the op's one kernel",
    obstacle,
    op,
    check: nsa::check,
    plan: nsa::plan,
};

pub fn contenders() -> Contenders<NsaProblem> {
    vec![FAMILY.ours()]
}

pub fn reference() -> Contenders<NsaProblem> {
    vec![FAMILY.plain()]
}

/// Operations beyond which the plain kernel is too slow to be a reference.
const PLAIN_FLOPS: f64 = 3e11;

fn obstacle(problem: &NsaProblem, variant: Variant) -> Option<String> {
    let flops = problem.cost().flops;
    let too_slow = variant == Variant::Plain && flops > PLAIN_FLOPS;
    too_slow.then(|| format!("too slow for {flops:.1e} operations"))
}

fn op(problem: &NsaProblem, tensors: &Tensors) -> Result<Nsa, ContenderError> {
    let shape = problem.shape;
    // Each op has some of these.
    let address = |name| tensors.address_or_null(name);
    Ok(Nsa {
        op: match problem.op {
            NsaOp::Selected => Op::Selected,
            NsaOp::Compressed => Op::Compressed,
            NsaOp::Sliding => Op::Sliding,
            NsaOp::Gated => Op::Gated,
        },
        dtype: dtype(problem.dtype())?,
        tokens: shape.tokens(),
        sequence: shape.sequence,
        heads: shape.heads,
        groups: shape.groups,
        dim: shape.dim,
        scale: problem.scale,
        block: shape.block,
        selected: shape.selected,
        window: shape.window,
        queries: address("queries"),
        keys: address("keys"),
        values: address("values"),
        blocks: address("blocks"),
        outputs: ["compressed", "selected", "sliding"].map(address),
        gates: ["gate_compressed", "gate_selected", "gate_sliding"].map(address),
        out: address("out"),
        lse: address("lse"),
    })
}
