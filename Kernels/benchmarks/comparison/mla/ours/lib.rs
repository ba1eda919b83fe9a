//! Our kernels.

use contender::{ContenderError, Contenders, Problem as _, Tensors};
use our_contender::{dtype, paged, Ours};
use workloads::{KvType, MlaDecodeProblem};

pub fn contenders() -> Contenders<MlaDecodeProblem> {
    let family = Ours {
        timed: "the kernel, and the one that merges the parts of split sequences; not the plan, \
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
    problem: &MlaDecodeProblem,
    tensors: &Tensors,
) -> Result<paged::Op<mla::Step>, ContenderError> {
    let shape = &problem.shape;
    let step = mla::Step {
        q: tensors.address("q")?,
        cache: tensors.address("cache")?,
        page_indptr: tensors.address("page_indptr")?,
        page_indices: tensors.address("page_indices")?,
        kv_len: tensors.address("kv_len")?,
        out: tensors.address("out")?,
        batch: shape.batch(),
        q_len: shape.q_len,
        heads: shape.heads,
        page_size: shape.page_size,
        pool_pages: problem.table.pool_pages,
        dtype: dtype(problem.dtype())?,
        fp8_cache: shape.kv_type == KvType::Fp8,
        scale: problem.scale,
        cache_scale: problem.cache_scale,
    };
    Ok(paged::Op {
        step,
        table: problem.table.clone(),
        choice: mla::choice,
        plan: mla::plan,
    })
}
