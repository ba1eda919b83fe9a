//! Our kernels.

use bridge::{Plan, UniquePtr, Variant};
use contender::{Contender, ContenderError};
use cxx::Exception;
use planned::{dtype, Address, Ours};
use workloads::{DecodeProblem, KvLayout, KvType, PageTable};

struct Op {
    step: ::decode::Step,
    table: PageTable,
}

pub fn contenders() -> Vec<Box<dyn Contender<DecodeProblem>>> {
    let family = Ours {
        timed: "one kernel, which also merges the parts of split sequences; not the plan, \
                which the host makes from the lengths",
        obstacle: |_, _| None,
        op,
        check: |op, variant| choice(op, variant).map(drop),
        plan,
    };
    vec![family.ours(), family.plain()]
}

fn choice(op: &Op, variant: Variant) -> Result<String, Exception> {
    ::decode::choice(&op.step, variant)
}

/// # Safety
/// As [`::decode::plan`].
unsafe fn plan(op: &Op, variant: Variant) -> Result<UniquePtr<Plan>, Exception> {
    let table = &op.table;
    ::decode::plan(
        &op.step,
        variant,
        &table.indptr,
        &table.indices,
        &table.lengths,
    )
}

fn op(problem: &DecodeProblem, address: Address) -> Result<Op, ContenderError> {
    let shape = &problem.shape;
    let step = ::decode::Step {
        q: address("q"),
        k_pages: address("k_pages"),
        v_pages: address("v_pages"),
        page_indptr: address("page_indptr"),
        page_indices: address("page_indices"),
        kv_len: address("kv_len"),
        out: address("out"),
        batch: shape.batch(),
        q_len: shape.q_len,
        heads: shape.heads,
        kv_heads: shape.kv_heads,
        head_dim: shape.head_dim,
        page_size: shape.page_size,
        pool_pages: problem.table.pool_pages,
        head_major: shape.layout == KvLayout::Hnd,
        fp8_cache: shape.kv_type == KvType::Fp8,
        dtype: dtype(problem.dtype)?,
        scale: problem.scale * problem.k_scale,
        value_scale: problem.v_scale,
    };
    let table = problem.table.clone();
    Ok(Op { step, table })
}
