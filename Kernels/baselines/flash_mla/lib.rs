//! FlashMLA's dense decoding for sm_90a, bf16.

#[cxx::bridge(namespace = "flash_mla::bridge")]
mod ffi {
    /// One decoding step over a pool of pages of 64 tokens.
    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Step {
        batch: i32,
        q_len: i32,
        heads: i32,
        pool_pages: i32,
        scale: f32,
    }

    /// Device addresses: q [batch, q_len, heads, 576], cache [pool_pages, 64, 576], out [batch, q_len, heads, 512].
    #[derive(Clone, Copy, Debug)]
    struct Tensors {
        q: usize,
        cache: usize,
        out: usize,
    }

    /// On the host: page p of sequence s is `indices[indptr[s] + p]`.
    #[derive(Clone, Copy, Debug)]
    struct PageTable<'a> {
        lengths: &'a [i32],
        indptr: &'a [i32],
        indices: &'a [i32],
    }

    unsafe extern "C++" {
        include!("Kernels/baselines/flash_mla/bridge.h");

        /// Whether this build has the machine code, as it has for sm_90a; if not, `plan` returns an error.
        fn is_built() -> bool;

        /// Whether the partial results of a step are few enough on a device with so many multiprocessors.
        fn fits(step: &Step, multiprocessors: i32) -> bool;

        /// A step with its schedule on the device.
        #[namespace = "flash_mla"]
        type Planned;

        /// # Safety
        /// The addresses are those of tensors of the step, which outlive what is enqueued.
        unsafe fn plan(
            step: &Step,
            tensors: &Tensors,
            table: &PageTable,
        ) -> Result<UniquePtr<Planned>>;

        /// Enqueues and returns immediately. Two steps of one plan must not overlap: they share memory.
        fn enqueue(planned: &Planned, stream: usize) -> Result<()>;

        /// Time on the device of the library's scheduler.
        fn plan_microseconds(planned: &Planned) -> f64;

        fn kernel_name(planned: &Planned) -> String;
    }
}

pub use ffi::*;

/// Tokens per page; there is no other size.
pub const PAGE_SIZE: usize = 64;
pub const VERSION: &str = "1.0.0";
/// Of the wheel `sgl-flash-mla`, which has the machine code.
pub const WHEEL_SHA256: &str = "95d2761376337af4568dbadedc1807b0d90e4d8383c63fa859518a34937392b3";
