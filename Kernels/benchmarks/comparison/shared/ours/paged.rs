//! Shared by our kernels over a paged cache: the plan takes the host's copy of the page table.

use cxx::Exception;
use workloads::PageTable;

use crate::{Choice, Plan, UniquePtr, Variant};

/// A bridge's plan for a step, given the offsets, indices and lengths of its table.
pub type PlanStep<Step> =
    unsafe fn(&Step, Variant, &[i32], &[i32], &[i32]) -> Result<UniquePtr<Plan>, Exception>;

/// A step in a bridge's terms, with the bridge's functions.
pub struct Op<Step> {
    pub step: Step,
    pub table: PageTable,
    pub choice: Choice<Step, Exception>,
    pub plan: PlanStep<Step>,
}

pub fn choice<Step>(op: &Op<Step>, variant: Variant) -> Result<String, Exception> {
    (op.choice)(&op.step, variant)
}

pub fn check<Step>(op: &Op<Step>, variant: Variant) -> Result<(), Exception> {
    choice(op, variant).map(drop)
}

/// # Safety
/// The step's addresses are of its tensors, and its table on the device is this one.
pub unsafe fn plan<Step>(op: &Op<Step>, variant: Variant) -> Result<UniquePtr<Plan>, Exception> {
    let table = &op.table;
    (op.plan)(
        &op.step,
        variant,
        &table.indptr,
        &table.indices,
        &table.lengths,
    )
}
