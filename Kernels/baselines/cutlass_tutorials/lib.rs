//! The GEMMs of CUTLASS's CuTe tutorial for Blackwell, unmodified.

#[cxx::bridge(namespace = "cutlass_tutorials::bridge")]
mod ffi {
    /// d = alpha * a * b^T + beta * c. Device addresses: a f16 [m, k], b f16 [n, k], c and d f32 [m, n].
    #[derive(Clone, Copy, Debug)]
    struct Product {
        a: usize,
        b: usize,
        c: usize,
        d: usize,
        m: i32,
        n: i32,
        k: i32,
        alpha: f32,
        beta: f32,
    }

    unsafe extern "C++" {
        include!("Kernels/baselines/cutlass_tutorials/bridge.h");

        /// Launches the kernel of a tutorial, 1 to 5, on the default stream, and waits for it. Where the sides are
        /// not multiples of its tile it writes a message and does nothing.
        ///
        /// # Safety
        /// The addresses are those of such tensors.
        unsafe fn run(tutorial: u8, product: &Product) -> Result<()>;
    }
}

pub use ffi::{run, Product};

pub const VERSION: &str = "4.2.0";
/// Of the wheel nvidia-cutlass.
pub const SHA256: &str = "f9599ada45c7bcb6bf53f7d3f0a7d154183e53451c01bfa59eecd37dd4a693f6";
