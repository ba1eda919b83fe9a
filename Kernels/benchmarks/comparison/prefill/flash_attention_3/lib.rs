//! FlashAttention-3; see Kernels/baselines/flash_attention_3/README.md for how.

use contender::{
    bound, contender, Binding, ContenderError, Contenders, DeviceInfo, DeviceKind, Facts, Identity,
    Problem, Tensors,
};
use flash_attention_3::Batch;
use numeric::DType;
use workloads::{PrefillProblem, PrefillShape};

pub fn contenders() -> Contenders<PrefillProblem> {
    let identity = Identity::baseline(
        "flash_attention_3",
        flash_attention_3::VERSION,
        Some(flash_attention_3::SHA256.to_owned()),
        "one kernel, which also writes the log-sum-exp of each row, after one that clears its counter or \
         sorts the sequences",
    );
    vec![contender(identity, DeviceKind::Cuda, unsupported, bind)]
}

/// Validation ensures that lengths fit in 31 bits.
fn batch(shape: &PrefillShape, scale: f32) -> Batch {
    let longest = |lengths: &[usize]| lengths.iter().copied().max().unwrap_or(0) as i32;
    let same = |lengths: &[usize]| lengths.iter().all(|&length| length == lengths[0]);
    Batch {
        same_lengths: same(&shape.q_lens) && same(&shape.kv_lens),
        causal: shape.causal,
        batch: shape.batch() as i32,
        total_q: shape.total_q() as i32,
        total_kv: shape.total_kv() as i32,
        longest_q: longest(&shape.q_lens),
        longest_kv: longest(&shape.kv_lens),
        heads: shape.heads as i32,
        kv_heads: shape.kv_heads as i32,
        head_dim: shape.head_dim as i32,
        value_dim: shape.value_dim() as i32,
        scale,
    }
}

fn unsupported(problem: &PrefillProblem, device: &DeviceInfo) -> Option<String> {
    let (shape, batch) = (&problem.shape, batch(&problem.shape, problem.scale));
    if device.arch != "sm_90a" {
        Some(format!("only for sm_90a; this is {}", device.arch))
    } else if problem.dtype() != DType::Bf16 {
        Some(format!("{} is not built in; use bf16", problem.dtype()))
    } else if problem.op.has_lse() {
        Some("writes the log-sum-exp as [heads, total_q]; the op is [total_q, heads]".to_owned())
    } else if !flash_attention_3::HEAD_DIMS.contains(&[shape.head_dim, shape.value_dim()]) {
        Some(format!("no kernel for a head dim of {}", shape.dims()))
    } else if shape.total_kv() == 0 {
        Some("no keys: the library runs no kernel".to_owned())
    } else if !flash_attention_3::is_built(&batch) {
        let kernel = flash_attention_3::kernel(&batch);
        Some(format!(
            "the library's choice is {kernel}, which is not built in; \
             Kernels/baselines/flash_attention_3/README.md says how to add it"
        ))
    } else {
        None
    }
}

fn bind(problem: &PrefillProblem, tensors: &Tensors, _device: &DeviceInfo) -> Binding {
    let batch = batch(&problem.shape, problem.scale);
    let addresses = flash_attention_3::Tensors {
        q: tensors.address("q")?,
        k: tensors.address("k")?,
        v: tensors.address("v")?,
        out: tensors.address("out")?,
        starts_q: tensors.address("cu_q")?,
        starts_kv: tensors.address("cu_kv")?,
    };
    // SAFETY: the problem describes its tensors, and the harness keeps them while a contender is bound.
    let planned = unsafe { flash_attention_3::plan(&batch, &addresses) };
    let planned = planned.map_err(ContenderError::new)?;
    let kernel = flash_attention_3::kernel(&batch);
    let facts = Facts::from([("kernel".to_owned(), kernel.into())]);
    Ok(bound(facts, move |stream| planned.enqueue(stream)))
}
