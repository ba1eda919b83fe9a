//! The bridge to the kernels that reach a card's limits. Crate `roofline` is the only user.
#![expect(
    clippy::missing_safety_doc,
    clippy::too_many_arguments,
    reason = "of the glue that cxx generates; launch shapes are plain numbers"
)]

#[cxx::bridge(namespace = "roofline")]
mod ffi {
    unsafe extern "C++" {
        include!("Kernels/benchmarks/harness/roofline/cuda/kernels.h");

        /// One pass of copy (0), triad (1) or read (2).
        ///
        /// # Safety
        /// The arrays are device memory of `bytes` each; `stream` is live.
        unsafe fn memory_pass(
            traffic: u32,
            hinted: bool,
            threads: u32,
            unroll: u32,
            blocks: u32,
            out: usize,
            a: usize,
            b: usize,
            bytes: u64,
            stream: usize,
        ) -> Result<()>;

        /// The driver's device-to-device copy.
        ///
        /// # Safety
        /// As for `memory_pass`.
        unsafe fn memcpy_pass(out: usize, a: usize, bytes: u64, stream: usize) -> Result<()>;

        /// Operations of one thread in one step.
        fn fp32_flops_per_step() -> u64;

        /// fp32 multiply-adds.
        ///
        /// # Safety
        /// `operands` holds two floats, `out` one per thread.
        unsafe fn fp32_steps(
            blocks: u32,
            threads: u32,
            steps: u32,
            operands: usize,
            out: usize,
            stream: usize,
        ) -> Result<()>;

        /// Bytes of operands that a tensor-core kernel reads.
        fn tensor_operand_bytes() -> usize;

        /// Operations of one warpgroup in one step; types: bf16 (0), f16 (1), fp8 e4m3 (2).
        fn tensor_flops_per_step(dtype: u32) -> u64;

        /// Tensor-core multiply-adds.
        ///
        /// # Safety
        /// `operands` is device memory of `tensor_operand_bytes()`, `out` one float per thread.
        unsafe fn tensor_steps(
            dtype: u32,
            blocks: u32,
            warpgroups: u32,
            steps: u32,
            operands: usize,
            out: usize,
            stream: usize,
        ) -> Result<()>;

        /// Bytes of operands of the kernel whose sums are in tensor memory.
        fn tensor_memory_operand_bytes() -> usize;

        /// Operations of one of its blocks in one step; types as above, and nvfp4 (3).
        fn tensor_memory_flops_per_step(dtype: u32) -> u64;

        /// Multiply-adds with sums in tensor memory, by blocks of 128 threads.
        ///
        /// # Safety
        /// `operands` is device memory of `tensor_memory_operand_bytes()`, `out` one float per thread.
        unsafe fn tensor_memory_steps(
            dtype: u32,
            blocks: u32,
            steps: u32,
            operands: usize,
            out: usize,
            stream: usize,
        ) -> Result<()>;
    }
}

pub use ffi::*;
