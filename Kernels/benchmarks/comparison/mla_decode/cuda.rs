//! Our kernels.

use bridge::{Plan, UniquePtr, Variant};
use contender::{Contender, ContenderError};
use cxx::Exception;
use planned::{dtype, Address, Ours};
use workloads::{MlaDecodeProblem, PageTable};

struct Op {
    step: mla::Step,
    table: PageTable,
}

pub fn contenders() -> Vec<Box<dyn Contender<MlaDecodeProblem>>> {
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

fn op(problem: &MlaDecodeProblem, address: Address) -> Result<Op, ContenderError> {
    let shape = &problem.shape;
    let step = mla::Step {
        q: address("q"),
        cache: address("cache"),
        page_indptr: address("page_indptr"),
        page_indices: address("page_indices"),
        kv_len: address("kv_len"),
        out: address("out"),
        batch: shape.batch(),
        q_len: shape.q_len,
        heads: shape.heads,
        page_size: shape.page_size,
        pool_pages: problem.table.pool_pages,
        dtype: dtype(problem.dtype)?,
        scale: problem.scale,
    };
    let table = problem.table.clone();
    Ok(Op { step, table })
}
