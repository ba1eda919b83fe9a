//! Native sparse attention on CUDA, for Rust.

#[cxx::bridge(namespace = "nsa::bridge")]
mod ffi {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Op {
        Selected,
        Compressed,
        Sliding,
        Gated,
    }

    /// Addresses are 0 for tensors that the operation does not have; see nsa.h for the layouts.
    #[derive(Clone, Copy, Debug)]
    struct Nsa {
        op: Op,
        dtype: Dtype,
        tokens: usize,
        sequence: usize,
        heads: usize,
        groups: usize,
        dim: usize,
        scale: f32,
        /// Tokens per block.
        block: usize,
        /// Blocks per query.
        selected: usize,
        /// Keys in the window.
        window: usize,
        queries: usize,
        keys: usize,
        values: usize,
        blocks: usize,
        /// The branches' outputs, to be summed.
        outputs: [usize; 3],
        gates: [usize; 3],
        out: usize,
        lse: usize,
    }

    #[namespace = "device"]
    unsafe extern "C++" {
        type Dtype = bridge::Dtype;
        type Plan = bridge::Plan;
        type Variant = bridge::Variant;
    }

    unsafe extern "C++" {
        include!("Kernels/nsa/bridge.h");

        /// Returns an error for what is not supported; addresses are ignored.
        fn check(given: &Nsa, variant: Variant) -> Result<()>;

        /// # Safety
        /// The addresses point to device memory that holds the tensors.
        unsafe fn plan(given: &Nsa, variant: Variant) -> Result<UniquePtr<Plan>>;
    }
}

pub use ffi::{check, plan, Nsa, Op};
