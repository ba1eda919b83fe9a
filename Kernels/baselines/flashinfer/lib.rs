//! FlashInfer's kernels, for Rust.
//!
//! Addresses are device addresses, which Rust never dereferences. Functions enqueue on `stream` and
//! return immediately; exceptions of the library and launch failures become errors.

#[cxx::bridge(namespace = "fi::bridge")]
mod ffi {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Dtype {
        F16,
        Bf16,
    }

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum PrefillKernel {
        /// mma.sync; all devices.
        Fa2,
        /// TMA and wgmma; sm_90a.
        Fa3,
        /// TMA and tcgen05, causal only; sm_100a.
        Cutlass,
    }

    /// Dense [tokens, heads, head_dim] tensors of packed requests, values and results with `value_dim`, and where each
    /// starts.
    #[derive(Clone, Copy, Debug)]
    struct Prefill {
        q: usize,
        k: usize,
        v: usize,
        out: usize,
        cu_q: usize,
        cu_kv: usize,
        heads: u32,
        kv_heads: u32,
        head_dim: u32,
        value_dim: u32,
        dtype: Dtype,
        causal: bool,
        scale: f32,
    }

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum DecodeKernel {
        /// One query per sequence.
        CudaCores,
        /// The FA2 prefill kernel over pages.
        TensorCores,
    }

    /// Decode over a paged cache; queries are [batch, q_len, heads, head_dim].
    #[derive(Clone, Copy, Debug)]
    struct Decode {
        q: usize,
        k_pages: usize,
        v_pages: usize,
        out: usize,
        page_indptr: usize,
        page_indices: usize,
        last_page_lengths: usize,
        q_len: u32,
        heads: u32,
        kv_heads: u32,
        head_dim: u32,
        page_size: u32,
        /// Pages are [kv_heads, page_size, head_dim], else [page_size, kv_heads, head_dim].
        heads_first: bool,
        dtype: Dtype,
        /// Keys and values are FP8 e4m3 instead of the type of the queries.
        fp8_cache: bool,
        /// Scale of scores, including that of FP8 keys.
        scale: f32,
        /// Scale of FP8 values; else 1.
        v_scale: f32,
    }

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum MlaKernel {
        /// mma.sync; all devices.
        Fa2,
        /// wgmma; sm_90a.
        Hopper,
    }

    /// Decode with latent attention, bf16; queries are [batch, q_len, heads, 576] and pages
    /// [page_size, 576], 512 latent elements before 64 rotary ones.
    #[derive(Clone, Copy, Debug)]
    struct MlaDecode {
        q: usize,
        cache: usize,
        out: usize,
        page_indices: usize,
        q_len: u32,
        heads: u32,
        page_size: u32,
        scale: f32,
    }

    /// A cubin file, relative to the folder of cubins.
    #[derive(Clone, Debug, PartialEq, Eq)]
    struct Cubin {
        path: String,
        sha256: String,
    }

    /// What TRT-LLM-gen would launch, and what it would load to make that choice.
    #[derive(Clone, Debug, PartialEq, Eq)]
    struct TrtllmGenChoice {
        kernel: String,
        cubins: Vec<Cubin>,
    }

    /// The device that a choice is made for.
    #[derive(Clone, Copy, Debug)]
    struct TrtllmGenDevice {
        multiprocessors: u32,
        /// Whether all clusters of a launch are resident at once; the choice depends on it.
        clusters_fit: bool,
    }

    /// The host's copy of a page table: page p of sequence s is `indices[indptr[s] + p]`.
    #[derive(Clone, Copy, Debug)]
    struct PageTable<'a> {
        /// Lengths of sequences on the device.
        lengths_address: usize,
        lengths: &'a [i32],
        indptr: &'a [i32],
        indices: &'a [i32],
        page_size: u32,
        pool_pages: u32,
    }

    extern "Rust" {
        /// The verified bytes of a cubin; TRT-LLM-gen calls this while a plan is made.
        fn read_cubin(path: &str, sha256: &str) -> Result<Vec<u8>>;
    }

    unsafe extern "C++" {
        include!("Kernels/baselines/flashinfer/bridge.h");

        /// Whether TRT-LLM-gen is in this build, as it is for sm_100a; if not, the functions below
        /// return an error.
        fn has_trtllm_gen() -> bool;

        /// Sha256 of the archive that the cubins and their list come from; empty if they are not in
        /// this build.
        fn trtllm_gen_archive_sha256() -> String;

        /// Needs no device. An error is the library's reason for having no kernel.
        fn choose_trtllm_gen_prefill(
            call: &Prefill,
            q_starts: &[i32],
            kv_starts: &[i32],
            device: TrtllmGenDevice,
        ) -> Result<TrtllmGenChoice>;

        fn plan_trtllm_gen_prefill(
            call: &Prefill,
            q_starts: &[i32],
            kv_starts: &[i32],
        ) -> Result<UniquePtr<Planned>>;

        /// The page fields of `call` are not read.
        fn choose_trtllm_gen_decode(
            call: &Decode,
            pages: &PageTable,
            device: TrtllmGenDevice,
        ) -> Result<TrtllmGenChoice>;

        fn plan_trtllm_gen_decode(call: &Decode, pages: &PageTable) -> Result<UniquePtr<Planned>>;

        fn choose_trtllm_gen_mla(
            call: &MlaDecode,
            pages: &PageTable,
            device: TrtllmGenDevice,
        ) -> Result<TrtllmGenChoice>;

        fn plan_trtllm_gen_mla(call: &MlaDecode, pages: &PageTable) -> Result<UniquePtr<Planned>>;

        /// Whether FlashInfer's CUTLASS kernel for latent attention is in this build, as it is for
        /// sm_100a.
        fn has_mla_cutlass() -> bool;

        /// One query per sequence, 128 heads.
        fn plan_mla_cutlass(call: &MlaDecode, pages: &PageTable) -> Result<UniquePtr<Planned>>;

        /// Whether this build has an XQA kernel for these sizes; `group` is query heads per KV head.
        fn has_xqa(
            dtype: Dtype,
            head_dim: u32,
            group: u32,
            page_size: u32,
            q_len: u32,
            fp8_cache: bool,
        ) -> bool;

        /// The page fields of `call` are not read. No sequence may be shorter than `q_len`.
        fn plan_xqa(call: &Decode, pages: &PageTable) -> Result<UniquePtr<Planned>>;

        /// An attention call with its schedule on the device. Plans share scratch memory: enqueue
        /// them on one stream.
        #[namespace = "fi"]
        type Planned;

        fn enqueue(planned: Pin<&mut Planned>, stream: usize) -> Result<()>;

        /// Host time of the library's planner.
        fn plan_microseconds(planned: &Planned) -> f64;

        /// Which kernel and tile the planner chose.
        fn kernel_name(planned: &Planned) -> String;

        /// Whether this build has a kernel for the type and the sizes of heads.
        fn has_prefill(kernel: PrefillKernel, dtype: Dtype, head_dim: u32, value_dim: u32) -> bool;

        /// `q_starts` and `kv_starts` are the host's copies of `cu_q` and `cu_kv`.
        fn plan_prefill(
            kernel: PrefillKernel,
            call: &Prefill,
            q_starts: &[i32],
            kv_starts: &[i32],
        ) -> Result<UniquePtr<Planned>>;

        fn has_decode(kernel: DecodeKernel, dtype: Dtype, head_dim: u32, fp8_cache: bool) -> bool;

        /// `page_starts` is the host's copy of `page_indptr`.
        fn plan_decode(
            kernel: DecodeKernel,
            call: &Decode,
            page_starts: &[i32],
        ) -> Result<UniquePtr<Planned>>;

        fn has_mla_decode(kernel: MlaKernel) -> bool;

        fn plan_mla_decode(
            kernel: MlaKernel,
            call: &MlaDecode,
            page_starts: &[i32],
            lengths: &[i32],
        ) -> Result<UniquePtr<Planned>>;
    }
}

pub use cubins::{folder as cubin_folder, CubinError};
pub use cxx::UniquePtr;
pub use ffi::*;

fn read_cubin(path: &str, sha256: &str) -> Result<Vec<u8>, CubinError> {
    cubins::read(&cubins::folder()?, path, sha256)
}

/// Version of the wheel that the kernels are compiled from.
pub const VERSION: &str = "0.6.13";
pub const WHEEL_SHA256: &str = "239e6ddc3cbbaf0bee251861a8c7c69438b1171830d69ddfa133ddea4494850d";
