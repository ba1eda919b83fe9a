//! The last step of weight gradients for libraries whose kernels leave partial sums.

use column_sums::{PartialSums, WeightDtype};
use contender::ContenderError;
use numeric::DType;
use workloads::NormProblem;

/// Space for `rows` of partial gradients of each weight, and their sums into `outs`: torch's part
/// of the op in Quack and Liger.
pub fn allocate(
    problem: &NormProblem,
    rows: usize,
    outs: &[usize],
) -> Result<PartialSums, ContenderError> {
    let dtype = match problem.types.weight {
        DType::F32 => WeightDtype::F32,
        _ => WeightDtype::Bf16,
    };
    PartialSums::new(rows, problem.shape.columns, dtype, outs).map_err(ContenderError::new)
}

pub fn enqueue(sums: &Option<PartialSums>, stream: usize) -> Result<(), ContenderError> {
    let enqueued = sums.as_ref().map_or(Ok(()), |sums| sums.enqueue(stream));
    enqueued.map_err(ContenderError::new)
}
