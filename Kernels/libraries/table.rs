//! The known libraries.

use std::ffi::{c_char, CStr};

use crate::{Processor, Wanted};

/// The parts behind the graphs of its backend API. No function of the legacy parts (ops, cnn, adv,
/// ext) is called.
pub static CUDNN: Wanted = Wanted {
    name: "cudnn",
    artifact: "nvidia-cudnn-cu13",
    variable: "CUDNN_LIBRARY",
    runs_on: Processor::Gpu,
    files: &[
        "libcudnn_graph.so.9",
        "libcudnn_heuristic.so.9",
        "libcudnn_engines_precompiled.so.9",
        "libcudnn_engines_runtime_compiled.so.9",
        "libcudnn_engines_tensor_ir.so.9",
        "libcudnn.so.9",
    ],
    // Some plans of attention open cuBLASLt.
    needs: &[&NVRTC, &CUBLASLT],
    links: &[],
    version: |symbols| {
        // SAFETY: the type is that of cudnn.h.
        let version: unsafe extern "C" fn() -> usize =
            unsafe { symbols.get(b"cudnnGetVersion\0") }?;
        // SAFETY: takes nothing.
        Ok(dotted(unsafe { version() }))
    },
};

pub static CUBLASLT: Wanted = Wanted {
    name: "cublaslt",
    artifact: "nvidia-cublas",
    variable: "CUBLASLT_LIBRARY",
    runs_on: Processor::Gpu,
    files: &["libcublasLt.so.13"],
    needs: &[&NVRTC],
    links: &[],
    version: |symbols| {
        // SAFETY: the type is that of cublasLt.h.
        let version: unsafe extern "C" fn() -> usize =
            unsafe { symbols.get(b"cublasLtGetVersion\0") }?;
        // SAFETY: takes nothing.
        Ok(dotted(unsafe { version() }))
    },
};

/// NVIDIA's kernels for transformers. Their norms are compiled by NVRTC, with [`CUDA_HEADERS`].
pub static TRANSFORMER_ENGINE: Wanted = Wanted {
    name: "transformer_engine",
    artifact: "transformer-engine-cu13",
    variable: "TRANSFORMER_ENGINE_LIBRARY",
    runs_on: Processor::Gpu,
    files: &["libtransformer_engine.so"],
    needs: &[],
    links: &[
        &NVRTC,
        &CUDART,
        &CUBLASLT,
        &CUBLAS,
        &CUDNN,
        &CUDNN_LEGACY,
        &NCCL,
    ],
    version: |_| Ok(String::new()),
};

/// What kernels of Transformer Engine include when it compiles them: read, never loaded.
pub static CUDA_HEADERS: Wanted = Wanted {
    name: "cuda_headers",
    artifact: "nvidia-cuda-runtime",
    variable: "NVTE_CUDA_INCLUDE_DIR",
    runs_on: Processor::Gpu,
    files: &[
        "cuda_bf16.h",
        "cuda_fp16.h",
        "cuda_fp8.h",
        "cuda_fp8.hpp",
        // Not included: a folder that has it counts as CUDA's.
        "cuda_runtime.h",
    ],
    needs: &[],
    links: &[],
    version: |_| Ok(String::new()),
};

/// The runtime for libraries that are linked with it; ours is in the program.
pub static CUDART: Wanted = Wanted {
    name: "cudart",
    artifact: "nvidia-cuda-runtime",
    variable: "CUDART_LIBRARY",
    runs_on: Processor::Gpu,
    files: &["libcudart.so.13"],
    needs: &[],
    links: &[],
    version: |symbols| {
        // SAFETY: the type is that of cuda_runtime_api.h.
        let version: unsafe extern "C" fn(*mut i32) -> i32 =
            unsafe { symbols.get(b"cudaRuntimeGetVersion\0") }?;
        let mut number = 0;
        // SAFETY: it is written.
        unsafe { version(&mut number) };
        Ok(format!("{}.{}", number / 1000, number % 1000 / 10))
    },
};

pub static CUBLAS: Wanted = Wanted {
    name: "cublas",
    artifact: "nvidia-cublas",
    variable: "CUBLAS_LIBRARY",
    runs_on: Processor::Gpu,
    files: &["libcublas.so.13"],
    needs: &[],
    links: &[],
    version: |symbols| {
        // SAFETY: the type is that of cublas_api.h.
        let property: unsafe extern "C" fn(i32, *mut i32) -> i32 =
            unsafe { symbols.get(b"cublasGetProperty\0") }?;
        let [mut major, mut minor, mut patch] = [0; 3];
        for (name, value) in [&mut major, &mut minor, &mut patch].into_iter().enumerate() {
            // SAFETY: it is written; the three are the properties 0 to 2.
            unsafe { property(name as i32, value) };
        }
        Ok(format!("{major}.{minor}.{patch}"))
    },
};

/// The parts of cuDNN that graphs do without.
pub static CUDNN_LEGACY: Wanted = Wanted {
    name: "cudnn_legacy",
    artifact: "nvidia-cudnn-cu13",
    variable: "CUDNN_LIBRARY",
    runs_on: Processor::Gpu,
    files: &[
        "libcudnn_ops.so.9",
        "libcudnn_cnn.so.9",
        "libcudnn_adv.so.9",
    ],
    needs: &[],
    links: &[],
    version: |_| Ok(String::new()),
};

/// Linked by Transformer Engine, and not called here.
pub static NCCL: Wanted = Wanted {
    name: "nccl",
    artifact: "nvidia-nccl-cu13",
    variable: "NCCL_LIBRARY",
    runs_on: Processor::Gpu,
    files: &["libnccl.so.2"],
    needs: &[],
    links: &[],
    version: |symbols| {
        // SAFETY: the type is that of nccl.h.
        let version: unsafe extern "C" fn(*mut i32) -> i32 =
            unsafe { symbols.get(b"ncclGetVersion\0") }?;
        let mut number = 0;
        // SAFETY: it is written.
        unsafe { version(&mut number) };
        Ok(dotted(number as usize))
    },
};

/// The activity tracer.
pub static CUPTI: Wanted = Wanted {
    name: "cupti",
    artifact: "nvidia-cuda-cupti",
    variable: "CUPTI_LIBRARY",
    runs_on: Processor::Gpu,
    files: &["libcupti.so.13"],
    needs: &[],
    links: &[],
    version: |symbols| {
        type Version = unsafe extern "C" fn(*mut u32) -> i32;
        // SAFETY: the type is that of cupti_version.h.
        let version: Version = unsafe { symbols.get(b"cuptiGetVersion\0") }?;
        let mut number = 0;
        // SAFETY: it is written.
        unsafe { version(&mut number) };
        Ok(dotted(number as usize))
    },
};

/// The run-time compiler, which cuDNN and cuBLASLt open by name.
pub static NVRTC: Wanted = Wanted {
    name: "nvrtc",
    artifact: "nvidia-cuda-nvrtc",
    variable: "NVRTC_LIBRARY",
    runs_on: Processor::Gpu,
    files: &["libnvrtc-builtins.so.13.0", "libnvrtc.so.13"],
    needs: &[],
    links: &[],
    version: |symbols| {
        type Version = unsafe extern "C" fn(*mut i32, *mut i32) -> i32;
        // SAFETY: the type is that of nvrtc.h.
        let version: Version = unsafe { symbols.get(b"nvrtcVersion\0") }?;
        let (mut major, mut minor) = (0, 0);
        // SAFETY: both are written.
        unsafe { version(&mut major, &mut minor) };
        Ok(format!("{major}.{minor}"))
    },
};

/// The CPU's primitives, with OpenMP's threads: libgomp comes with the machine's compiler.
pub static ONEDNN: Wanted = Wanted {
    name: "onednn",
    artifact: "onednn-cpu-gomp",
    variable: "ONEDNN_LIBRARY",
    runs_on: Processor::Cpu,
    files: &["libdnnl.so.3"],
    needs: &[],
    links: &[],
    version: |symbols| {
        /// The beginning of `dnnl_version_t`.
        #[repr(C)]
        struct Version {
            major: i32,
            minor: i32,
            patch: i32,
        }
        // SAFETY: the type is that of dnnl.h.
        let version: unsafe extern "C" fn() -> *const Version =
            unsafe { symbols.get(b"dnnl_version\0") }?;
        // SAFETY: takes nothing, and points to a constant.
        let version = unsafe { &*version() };
        Ok(format!(
            "{}.{}.{}",
            version.major, version.minor, version.patch
        ))
    },
};

/// With 64-bit sizes and threads of its own.
pub static OPENBLAS: Wanted = Wanted {
    name: "openblas",
    artifact: "scipy-openblas64",
    variable: "OPENBLAS_LIBRARY",
    runs_on: Processor::Cpu,
    files: &["libscipy_openblas64_.so"],
    needs: &[],
    links: &[],
    version: |symbols| {
        // SAFETY: the type is that of cblas.h.
        let config: unsafe extern "C" fn() -> *const c_char =
            unsafe { symbols.get(b"scipy_openblas_get_config64_\0") }?;
        // SAFETY: takes nothing, and returns a string that is never freed.
        let config = unsafe { CStr::from_ptr(config()) }.to_string_lossy();
        Ok(version_of(&config).to_owned())
    },
};

/// "OpenBLAS 0.3.34 USE64BITINT ..." is 0.3.34.
fn version_of(config: &str) -> &str {
    config.split_whitespace().nth(1).unwrap_or("unknown")
}

/// 92700 is 9.27.0, 130100 is 13.1.0.
fn dotted(version: usize) -> String {
    let (major, minor, patch) = (version / 10_000, version / 100 % 100, version % 100);
    format!("{major}.{minor}.{patch}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_dotted() {
        assert_eq!(dotted(92_700), "9.27.0");
        assert_eq!(dotted(90_501), "9.5.1");
        assert_eq!(dotted(130_100), "13.1.0");
        assert_eq!(
            version_of("OpenBLAS 0.3.34 USE64BITINT DYNAMIC_ARCH"),
            "0.3.34"
        );
        assert_eq!(version_of(""), "unknown");
    }
}
