//! The functions of the library that are used, by the names and values of its header.

use std::ffi::c_void;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

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
        /// The loaded library. Its functions take what its header says.
        pub struct Library {
            $(pub(crate) $field: unsafe extern "C" fn($($argument),*) -> Status,)*
            version: unsafe extern "C" fn() -> usize,
            /// Keeps the functions' code mapped.
            _library: libloading::Library,
        }

        impl Library {
            fn resolve(library: libloading::Library) -> Result<Self, libloading::Error> {
                // SAFETY: the symbols' types are those of cublasLt.h, the same in all versions from
                // 11 on; the library stays mapped for as long as the struct exists.
                unsafe {
                    Ok(Self {
                        $($field: *library.get($symbol)?,)*
                        version: *library.get(b"cublasLtGetVersion")?,
                        _library: library,
                    })
                }
            }
        }
    };
}

functions! {
    create = b"cublasLtCreate": fn(*mut Handle);
    destroy = b"cublasLtDestroy": fn(Handle);
    description_create = b"cublasLtMatmulDescCreate": fn(*mut Handle, i32, i32);
    description_set = b"cublasLtMatmulDescSetAttribute": fn(Handle, i32, *const c_void, usize);
    description_destroy = b"cublasLtMatmulDescDestroy": fn(Handle);
    layout_create = b"cublasLtMatrixLayoutCreate": fn(*mut Handle, i32, u64, u64, i64);
    layout_destroy = b"cublasLtMatrixLayoutDestroy": fn(Handle);
    preference_create = b"cublasLtMatmulPreferenceCreate": fn(*mut Handle);
    preference_set = b"cublasLtMatmulPreferenceSetAttribute":
        fn(Handle, i32, *const c_void, usize);
    preference_destroy = b"cublasLtMatmulPreferenceDestroy": fn(Handle);
    heuristic = b"cublasLtMatmulAlgoGetHeuristic":
        fn(Handle, Handle, Handle, Handle, Handle, Handle, Handle, i32, *mut Proposal, *mut i32);
    config_get = b"cublasLtMatmulAlgoConfigGetAttribute":
        fn(*const Algorithm, i32, *mut c_void, usize, *mut usize);
    matmul = b"cublasLtMatmul":
        fn(Handle, Handle, *const c_void, *const c_void, Handle, *const c_void, Handle,
           *const c_void, *const c_void, Handle, *mut c_void, Handle, *const Algorithm,
           *mut c_void, usize, *mut c_void);
}

/// Names that a folder or the loader may have it under; the kernels here are for CUDA 13.
const NAMES: [&str; 2] = ["libcublasLt.so.13", "libcublasLt.so"];

impl Library {
    /// The library, loaded once per process.
    pub fn get() -> Result<&'static Library, Error> {
        static LIBRARY: OnceLock<Result<Library, Error>> = OnceLock::new();
        LIBRARY
            .get_or_init(|| {
                let place = std::env::var_os("CUBLASLT_LIBRARY").map(PathBuf::from);
                let mut failure = "no name was tried".to_owned();
                for name in candidates(place.as_deref()) {
                    // SAFETY: the initialisers of cuBLASLt have no requirements of their own.
                    let opened = unsafe { libloading::Library::new(&name) };
                    match opened.and_then(Library::resolve) {
                        Ok(library) => return Ok(library),
                        Err(error) => failure = error.to_string(),
                    }
                }
                Err(Error::Absent(failure))
            })
            .as_ref()
            .map_err(Clone::clone)
    }

    /// As `13.1.0`.
    pub fn version(&self) -> String {
        // SAFETY: takes nothing, returns a number.
        let version = unsafe { (self.version)() };
        // 130100 is 13.1.0.
        format!(
            "{}.{}.{}",
            version / 10000,
            version / 100 % 100,
            version % 100
        )
    }
}

fn candidates(place: Option<&Path>) -> Vec<PathBuf> {
    match place {
        Some(place) if place.is_dir() => NAMES.iter().map(|name| place.join(name)).collect(),
        Some(place) => vec![place.to_owned()],
        None => NAMES.iter().map(PathBuf::from).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_tried_alone_and_a_folder_by_name() {
        let file = Path::new("/somewhere/libcublasLt.so.13");
        assert_eq!(candidates(Some(file)), [file.to_owned()]);
        let folder = std::env::temp_dir();
        assert_eq!(
            candidates(Some(&folder))[0],
            folder.join("libcublasLt.so.13")
        );
        assert_eq!(candidates(None).len(), 2);
    }

    #[test]
    fn structures_have_the_sizes_of_the_header() {
        assert_eq!(size_of::<Algorithm>(), 64);
        assert_eq!(size_of::<Proposal>(), 64 + 8 + 4 + 4 + 16);
    }
}
