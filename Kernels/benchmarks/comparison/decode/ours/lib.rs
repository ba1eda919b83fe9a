//! Our kernels.

use contender::{ContenderError, Contenders, Problem as _, Tensors};
use our_contender::{dtype, paged, Ours};
use workloads::{DecodeProblem, KvLayout, KvType};

pub fn contenders() -> Contenders<DecodeProblem> {
    let family = Ours {
        timed: "one kernel, which also merges the parts of split sequences; not the plan, \
                which the host builds from the lengths",
        obstacle: |_, _| None,
        op,
        check: paged::check,
        plan: paged::plan,
    };
    vec![
        family.ours(),
        family.plain(),
        family.portable(paged::choice),
    ]
}

fn op(
    problem: &DecodeProblem,
    tensors: &Tensors,
) -> Result<paged::Op<decode::Step>, ContenderError> {
    let shape = &problem.shape;
    let step = decode::Step {
        q: tensors.address("q")?,
        k_pages: tensors.address("k_pages")?,
        v_pages: tensors.address("v_pages")?,
        page_indptr: tensors.address("page_indptr")?,
        page_indices: tensors.address("page_indices")?,
        kv_len: tensors.address("kv_len")?,
        out: tensors.address("out")?,
        batch: shape.batch(),
        q_len: shape.q_len,
        heads: shape.heads,
        kv_heads: shape.kv_heads,
        head_dim: shape.head_dim,
        page_size: shape.page_size,
        pool_pages: problem.table.pool_pages,
        head_major: shape.layout == KvLayout::Hnd,
        fp8_cache: shape.kv_type == KvType::Fp8,
        dtype: dtype(problem.dtype())?,
        scale: problem.scale * problem.k_scale,
        value_scale: problem.v_scale,
    };
    Ok(paged::Op {
        step,
        table: problem.table.clone(),
        choice: decode::choice,
        plan: decode::plan,
    })
}
