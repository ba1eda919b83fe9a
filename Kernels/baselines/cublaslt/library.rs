//! The library functions used here, with the names and values of its header.

use std::ffi::c_void;
use std::sync::OnceLock;

use libraries::{Opened, CUBLASLT};

use crate::Error;

pub type Handle = *mut c_void;
pub type Status = i32;

/// `cublasLtMatmulAlgo_t`: opaque, copied by value.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Algorithm {
    data: [u64; 8],
}

/// `cublasLtMatmulHeuristicResult_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Proposal {
    pub algorithm: Algorithm,
    pub workspace_bytes: usize,
    pub status: Status,
    pub waves: f32,
    pub reserved: [i32; 4],
}

macro_rules! functions {
    ($($field:ident = $symbol:literal: fn($($argument:ty),*);)*) => {
        /// The loaded library, with functions as in its header.
        pub struct Library {
            $(pub(crate) $field: unsafe extern "C" fn($($argument),*) -> Status,)*
            /// Keeps the functions' code mapped.
            opened: Opened,
        }

        impl Library {
            fn resolve(opened: Opened) -> Result<Self, libraries::Error> {
                // SAFETY: the symbols' types are those of cublasLt.h, the same in all versions from
                // 11 on; the library stays mapped for as long as the struct exists.
                unsafe {
                    Ok(Self {
                        $($field: opened.symbols.get($symbol)?,)*
                        opened,
                    })
                }
            }
        }
    };
}

functions! {
    create = b"cublasLtCreate\0": fn(*mut Handle);
    destroy = b"cublasLtDestroy\0": fn(Handle);
    description_create = b"cublasLtMatmulDescCreate\0": fn(*mut Handle, i32, i32);
    description_set = b"cublasLtMatmulDescSetAttribute\0": fn(Handle, i32, *const c_void, usize);
    description_destroy = b"cublasLtMatmulDescDestroy\0": fn(Handle);
    layout_create = b"cublasLtMatrixLayoutCreate\0": fn(*mut Handle, i32, u64, u64, i64);
    layout_destroy = b"cublasLtMatrixLayoutDestroy\0": fn(Handle);
    preference_create = b"cublasLtMatmulPreferenceCreate\0": fn(*mut Handle);
    preference_set = b"cublasLtMatmulPreferenceSetAttribute\0":
        fn(Handle, i32, *const c_void, usize);
    preference_destroy = b"cublasLtMatmulPreferenceDestroy\0": fn(Handle);
    heuristic = b"cublasLtMatmulAlgoGetHeuristic\0":
        fn(Handle, Handle, Handle, Handle, Handle, Handle, Handle, i32, *mut Proposal, *mut i32);
    config_get = b"cublasLtMatmulAlgoConfigGetAttribute\0":
        fn(*const Algorithm, i32, *mut c_void, usize, *mut usize);
    matmul = b"cublasLtMatmul\0":
        fn(Handle, Handle, *const c_void, *const c_void, Handle, *const c_void, Handle,
           *const c_void, *const c_void, Handle, *mut c_void, Handle, *const Algorithm,
           *mut c_void, usize, *mut c_void);
}

impl Library {
    /// The library, loaded once per process.
    pub fn get() -> Result<&'static Library, Error> {
        static LIBRARY: OnceLock<Result<Library, Error>> = OnceLock::new();
        LIBRARY
            .get_or_init(|| {
                let opened = libraries::open(&CUBLASLT);
                opened.and_then(Library::resolve).map_err(Error::Absent)
            })
            .as_ref()
            .map_err(Clone::clone)
    }

    /// As `13.1.0`.
    pub fn version(&self) -> &str {
        &self.records()[0].version
    }

    /// What was loaded, cuBLASLt first.
    pub fn records(&self) -> &[libraries::Library] {
        &self.opened.records
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_have_the_sizes_of_the_header() {
        assert_eq!(size_of::<Algorithm>(), 64);
        assert_eq!(size_of::<Proposal>(), 64 + 8 + 4 + 4 + 16);
    }
}
