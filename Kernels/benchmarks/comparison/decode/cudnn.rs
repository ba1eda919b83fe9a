//! cuDNN's attention over a paged cache.

use contender::{Contenders, Problem};
use cudnn::{DataType, PagedAttention};
use cudnn_contender::{contender, Operation};
use numeric::DType;
use workloads::{DecodeProblem, KvLayout, KvType};

pub fn contenders() -> Contenders<DecodeProblem> {
    vec![contender(Operation {
        timed_region: "all kernels of the plan",
        arguments: |_| vec!["q", "k_pages", "v_pages", "out"],
        of,
        graph: PagedAttention::graph,
    })]
}

fn of(problem: &DecodeProblem) -> Result<PagedAttention, String> {
    let shape = &problem.shape;
    if shape.kv_type == KvType::Fp8 {
        return Err("an FP8 cache needs FP8 queries".to_owned());
    }
    if let Some(reason) = problem.table.shorter_than(shape.q_len) {
        return Err(reason);
    }
    let whole = |length: &usize| length.is_multiple_of(shape.page_size);
    if shape.q_len > 1 && !shape.lengths.iter().all(whole) {
        // Seen with 9.27; with one query it does not.
        let reason = "for several queries it reads the rest of a sequence's last page, where NaN becomes its answer";
        return Err(reason.to_owned());
    }
    problem
        .table
        .validate()
        .map_err(|error| error.to_string())?;
    Ok(PagedAttention {
        q_len: shape.q_len,
        kv_lens: shape.lengths.clone(),
        page_indptr: problem.table.indptr.clone(),
        page_indices: problem.table.indices.clone(),
        pool_pages: problem.table.pool_pages,
        page_size: shape.page_size,
        heads: shape.heads,
        kv_heads: shape.kv_heads,
        head_dim: shape.head_dim,
        heads_first: shape.layout == KvLayout::Hnd,
        scale: problem.scale,
        data_type: match problem.dtype() {
            DType::F16 => DataType::F16,
            DType::Bf16 => DataType::Bf16,
            other => return Err(format!("{other} is not supported; use f16 or bf16")),
        },
    })
}
