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
    version: |symbols| {
        // SAFETY: the type is that of cublasLt.h.
        let version: unsafe extern "C" fn() -> usize =
            unsafe { symbols.get(b"cublasLtGetVersion\0") }?;
        // SAFETY: takes nothing.
        Ok(dotted(unsafe { version() }))
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
