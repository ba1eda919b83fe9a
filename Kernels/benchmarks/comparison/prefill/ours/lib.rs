//! Our kernels.

use contender::{ContenderError, Contenders, Problem as _, Tensors};
use cxx::Exception;
use our_contender::{dtype, Ours, Plan, UniquePtr, Variant};
use workloads::PrefillProblem;

/// Query-key pairs that the plain kernel accepts: beyond this it would take seconds.
const MOST_PLAIN_PAIRS: f64 = 2e9;

struct Op {
    batch: prefill::Batch,
    starts_q: Vec<i32>,
    starts_kv: Vec<i32>,
}

pub fn contenders() -> Contenders<PrefillProblem> {
    let family = Ours {
        timed: "one kernel, or two where keys are split; the list of tiles is built beforehand (plan_us)",
        obstacle,
        op,
        check: |op, variant| choice(op, variant).map(drop),
        plan,
    };
    vec![family.ours(), family.portable(choice), family.plain()]
}

fn obstacle(problem: &PrefillProblem, variant: Variant) -> Option<String> {
    let pairs = problem.shape.visible_pairs() * problem.shape.heads as f64;
    let too_slow = variant == Variant::Plain && pairs > MOST_PLAIN_PAIRS;
    too_slow.then(|| format!("{pairs:.1e} query-key pairs; the limit is {MOST_PLAIN_PAIRS:.1e}"))
}

fn choice(op: &Op, variant: Variant) -> Result<String, Exception> {
    prefill::choice(&op.batch, variant)
}

/// # Safety
/// As for [`prefill::plan`].
unsafe fn plan(op: &Op, variant: Variant) -> Result<UniquePtr<Plan>, Exception> {
    prefill::plan(&op.batch, variant, &op.starts_q, &op.starts_kv)
}

fn op(problem: &PrefillProblem, tensors: &Tensors) -> Result<Op, ContenderError> {
    let shape = &problem.shape;
    Ok(Op {
        batch: prefill::Batch {
            q: tensors.address("q")?,
            k: tensors.address("k")?,
            v: tensors.address("v")?,
            starts_q: tensors.address("cu_q")?,
            starts_kv: tensors.address("cu_kv")?,
            out: tensors.address("out")?,
            lse: tensors.address_or_null("lse"),
            total_q: shape.total_q(),
            total_kv: shape.total_kv(),
            sequences: shape.kv_lens.len(),
            longest_kv: shape.kv_lens.iter().copied().max().unwrap_or(0),
            heads: shape.heads,
            kv_heads: shape.kv_heads,
            head_dim: shape.head_dim,
            value_dim: shape.value_dim(),
            causal: shape.causal,
            scale: problem.scale,
            dtype: dtype(problem.dtype())?,
        },
        starts_q: starts(&shape.q_lens),
        starts_kv: starts(&shape.kv_lens),
    })
}

fn starts(lengths: &[usize]) -> Vec<i32> {
    let mut total = 0;
    let ends = lengths.iter().map(|&length| {
        total += i32::try_from(length).expect("a valid problem's tokens fit in 31 bits");
        total
    });
    [0].into_iter().chain(ends).collect()
}
