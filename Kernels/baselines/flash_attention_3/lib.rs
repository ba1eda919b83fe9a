//! FlashAttention-3's forward kernels for Hopper, in bf16.

#[cxx::bridge(namespace = "flash_attention_3::bridge")]
mod ffi {
    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Batch {
        /// Every sequence has `longest_q` queries and `longest_kv` keys: the library's dense entry point.
        same_lengths: bool,
        causal: bool,
        batch: i32,
        total_q: i32,
        total_kv: i32,
        longest_q: i32,
        longest_kv: i32,
        heads: i32,
        kv_heads: i32,
        head_dim: i32,
        value_dim: i32,
        scale: f32,
    }

    /// Device addresses: q [total_q, heads, head_dim], k [total_kv, kv_heads, head_dim], out and v the same with
    /// value_dim, starts i32 [batch + 1].
    #[derive(Clone, Copy, Debug)]
    struct Tensors {
        q: usize,
        k: usize,
        v: usize,
        out: usize,
        starts_q: usize,
        starts_kv: usize,
    }

    unsafe extern "C++" {
        include!("Kernels/baselines/flash_attention_3/bridge.h");

        /// The kernel that the library runs for a batch.
        fn kernel(batch: &Batch) -> String;

        /// Whether this build has it.
        fn is_built(batch: &Batch) -> bool;

        /// A launch on the current device, with the library's own workspace.
        type Planned;

        /// # Safety
        /// The addresses are those of tensors of the batch, which outlive what is enqueued.
        unsafe fn plan(batch: &Batch, tensors: &Tensors) -> Result<UniquePtr<Planned>>;

        /// Enqueues and returns immediately.
        fn enqueue(self: &Planned, stream: usize) -> Result<()>;
    }
}

pub use ffi::{is_built, kernel, plan, Batch, Planned, Tensors};

/// Head dimensions of keys and of values that the library has kernels for, as long as it needs no padding.
pub const HEAD_DIMS: [[usize; 2]; 6] = [
    [64, 64],
    [96, 96],
    [128, 128],
    [192, 128],
    [192, 192],
    [256, 256],
];
pub const VERSION: &str = "3.0.0.b1";
/// Of the source package of xFormers 0.0.34, which has the sources.
pub const SHA256: &str = "716bd9ffe61f46c2cc0536abf8b8c43ec594bea47a49394ea5cfa417e9de6a6f";
