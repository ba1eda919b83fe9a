//! The known libraries.

use crate::Wanted;

/// The parts behind the graphs of its backend API. No function of the legacy parts (ops, cnn, adv,
/// ext) is called.
pub static CUDNN: Wanted = Wanted {
    name: "cudnn",
    artifact: "nvidia-cudnn-cu13",
    variable: "CUDNN_LIBRARY",
    files: &[
        "libcudnn_graph.so.9",
        "libcudnn_heuristic.so.9",
        "libcudnn_engines_precompiled.so.9",
        "libcudnn_engines_runtime_compiled.so.9",
        "libcudnn_engines_tensor_ir.so.9",
        "libcudnn.so.9",
    ],
    needs: &[&NVRTC],
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
    }
}
