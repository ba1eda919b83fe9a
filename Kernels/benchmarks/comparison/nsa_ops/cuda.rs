//! CUDA contenders: our kernels, flash-linear-attention, and the plain kernels that serve as the
//! gate's full reference.

use contender::{Contender, ContenderError, Problem};
use nsa::{Nsa, Op};
use planned::{dtype, Address, Ours, Variant};
use workloads::{NsaOp, NsaProblem};

pub fn contenders() -> Vec<Box<dyn Contender<NsaProblem>>> {
    let family = Ours {
        timed: "the op's one kernel",
        obstacle,
        op,
        check: nsa::check,
        plan: nsa::plan,
    };
    vec![family.ours(), super::fla::contender(), family.plain()]
}

/// Products beyond which the plain kernel would take too long to be a reference.
const PLAIN_FLOPS: f64 = 3e11;

fn obstacle(problem: &NsaProblem, variant: Variant) -> Option<String> {
    let flops = problem.cost().flops;
    let too_slow = variant == Variant::Plain && flops > PLAIN_FLOPS;
    too_slow.then(|| format!("too slow for {flops:.1e} operations"))
}

fn op(problem: &NsaProblem, address: Address) -> Result<Nsa, ContenderError> {
    let shape = problem.shape;
    Ok(Nsa {
        op: match problem.op {
            NsaOp::Selected => Op::Selected,
            NsaOp::Compressed => Op::Compressed,
            NsaOp::Sliding => Op::Sliding,
            NsaOp::Gated => Op::Gated,
        },
        dtype: dtype(problem.dtype)?,
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
