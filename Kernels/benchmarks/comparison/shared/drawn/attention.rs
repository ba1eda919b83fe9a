use numeric::DType;
use workloads::{
    NsaOp, NsaProblem, NsaShape, NsaSuite, PrefillOp, PrefillProblem, PrefillShape, PrefillSuite,
};

use crate::Draw;

pub struct PrefillLimits {
    pub sequences: usize,
    pub longest: usize,
    pub dtypes: &'static [DType],
    /// Head dims, and those of values where they differ.
    pub dims: &'static [(usize, Option<usize>)],
}

/// Lengths 0 and 1, around tile edges, any; cached prefixes; MHA, GQA and MQA; with and without the mask.
pub fn prefill(draw: &Draw, limits: &PrefillLimits) -> PrefillProblem {
    let batch = 1 + draw.below(0, limits.sequences);
    let causal = draw.below(1, 3) > 0;
    let length = |stream: u32| match draw.below(stream, 6) {
        0 => 0,
        1 => 1,
        // One below, at or above a multiple of every tile height.
        2 => 64 * (1 + draw.below(stream + 1, limits.longest / 64)) - 1 + draw.below(stream + 2, 3),
        3 => 1 + draw.below(stream + 1, 40),
        _ => 1 + draw.below(stream + 1, limits.longest),
    };
    let (mut q_lens, mut kv_lens) = (Vec::new(), Vec::new());
    for sequence in 0..batch as u32 {
        let q = length(100 + 16 * sequence);
        let other = length(108 + 16 * sequence);
        q_lens.push(q);
        kv_lens.push(match (causal, draw.below(106 + 16 * sequence, 2)) {
            (true, 0) => q,
            (true, _) => q + other,
            // No keys only if there are no queries.
            (false, _) => other.max(usize::from(q > 0)),
        });
    }
    if q_lens.iter().all(|&length| length == 0) {
        q_lens.push(1);
        kv_lens.push(1);
    }
    let (heads, kv_heads) = draw.one_of(2, &[(1, 1), (4, 4), (4, 1), (8, 2), (6, 2), (7, 1)]);
    let (head_dim, value_dim) = draw.one_of(3, limits.dims);
    let shape = PrefillShape {
        q_lens,
        kv_lens,
        heads,
        kv_heads,
        head_dim,
        value_dim,
        causal,
    };
    let op = draw.one_of(4, &[PrefillOp::Prefill, PrefillOp::PrefillLse]);
    let dtype = draw.one_of(5, limits.dtypes);
    let workload = PrefillSuite::custom(format!("random {}", draw.case));
    PrefillProblem::new(op, shape, dtype, workload).expect("a valid batch")
}

/// At most `pairs` query tokens x keys; operations take turns.
pub fn nsa(draw: &Draw, pairs: usize, dtypes: &[DType]) -> NsaProblem {
    let groups = 1 + draw.below(0, 4);
    let block = 16 * (1 + draw.below(1, 6));
    let selected = 1 + draw.below(2, 32);
    let most = (pairs / (groups * block * selected)).clamp(1, 5000);
    let sequence = 1 + draw.below(3, most);
    let shape = NsaShape {
        batch: 1 + draw.below(4, (most / sequence).clamp(1, 3)),
        sequence,
        heads: groups * (1 + draw.below(5, 16)),
        groups,
        dim: 64 << draw.below(6, 2),
        block,
        selected,
        window: 1 + draw.below(8, 2 * block * selected),
    };
    let (shape, workload) = NsaSuite::custom(shape);
    let dtype = draw.one_of(7, dtypes);
    NsaProblem::new(draw.turn(&NsaOp::ALL), shape, dtype, workload)
}
