//! Our kernels.

use contender::{ContenderError, Contenders, Problem as _, Tensors};
use cxx::Exception;
use our_contender::{dtype, Ours, Plan, UniquePtr, Variant};
use workloads::{MlaDecodeProblem, PageTable};

struct Op {
    step: mla::Step,
    table: PageTable,
}

pub fn contenders() -> Contenders<MlaDecodeProblem> {
    let family = Ours {
        timed: "the kernel, and the one that merges the parts of split sequences; not the plan, \
                which the host makes from the lengths",
        obstacle: |_, _| None,
        op,
        check: |op, variant| choice(op, variant).map(drop),
        plan,
    };
    vec![family.ours(), family.plain(), family.portable(choice)]
}

fn choice(op: &Op, variant: Variant) -> Result<String, Exception> {
    mla::choice(&op.step, variant)
}

/// # Safety
/// As [`mla::plan`].
unsafe fn plan(op: &Op, variant: Variant) -> Result<UniquePtr<Plan>, Exception> {
    let table = &op.table;
    mla::plan(
        &op.step,
        variant,
        &table.indptr,
        &table.indices,
        &table.lengths,
    )
}

fn op(problem: &MlaDecodeProblem, tensors: &Tensors) -> Result<Op, ContenderError> {
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
        scale: problem.scale,
    };
    let table = problem.table.clone();
    Ok(Op { step, table })
}
