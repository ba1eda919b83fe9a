//! The library functions used here, with the names and values of its header.

use std::ffi::{c_void, CStr};
use std::sync::OnceLock;

use libraries::{Opened, ONEDNN};

use crate::Error;

pub type Handle = *mut c_void;
pub type Status = i32;

/// `dnnl_exec_arg_t`: which argument, and its memory.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Argument {
    pub place: i32,
    pub memory: Handle,
}

macro_rules! functions {
    ($($field:ident = $symbol:literal: fn($($argument:ty),*);)*) => {
        /// The loaded library, with functions as in its header, and the engine and stream of the CPU.
        pub struct Library {
            $(pub(crate) $field: unsafe extern "C" fn($($argument),*) -> Status,)*
            set_threads: unsafe extern "C" fn(i32),
            pub(crate) engine: Handle,
            pub(crate) stream: Handle,
            /// Keeps the functions' code mapped.
            opened: Opened,
        }

        impl Library {
            fn resolve(opened: Opened) -> Result<Self, Error> {
                let version = opened.records[0].version.clone();
                // SAFETY: the symbols' types are those of dnnl.h, the same in all versions from 3.0
                // on, and of omp.h; the library stays mapped for as long as the struct exists.
                unsafe {
                    let threads = opened.symbols.get(b"omp_set_num_threads\0");
                    Ok(Self {
                        $($field: opened.symbols.get($symbol).map_err(Error::Absent)?,)*
                        set_threads: threads.map_err(|_| Error::Threads { version })?,
                        engine: std::ptr::null_mut(),
                        stream: std::ptr::null_mut(),
                        opened,
                    })
                }
            }
        }
    };
}

functions! {
    engine_create = b"dnnl_engine_create\0": fn(*mut Handle, i32, usize);
    stream_create = b"dnnl_stream_create\0": fn(*mut Handle, Handle, u32);
    stream_wait = b"dnnl_stream_wait\0": fn(Handle);
    layout_create = b"dnnl_memory_desc_create_with_strides\0":
        fn(*mut Handle, i32, *const i64, i32, *const i64);
    layout_destroy = b"dnnl_memory_desc_destroy\0": fn(Handle);
    memory_create = b"dnnl_memory_create\0": fn(*mut Handle, Handle, Handle, *mut c_void);
    memory_destroy = b"dnnl_memory_destroy\0": fn(Handle);
    layer_norm = b"dnnl_layer_normalization_forward_primitive_desc_create\0":
        fn(*mut Handle, Handle, i32, Handle, Handle, Handle, f32, u32, Handle);
    layer_norm_backward = b"dnnl_layer_normalization_backward_primitive_desc_create\0":
        fn(*mut Handle, Handle, i32, Handle, Handle, Handle, Handle, f32, u32, Handle, Handle);
    softmax = b"dnnl_softmax_forward_primitive_desc_create\0":
        fn(*mut Handle, Handle, i32, i32, Handle, Handle, i32, Handle);
    softmax_backward = b"dnnl_softmax_backward_primitive_desc_create\0":
        fn(*mut Handle, Handle, i32, Handle, Handle, Handle, i32, Handle, Handle);
    eltwise = b"dnnl_eltwise_forward_primitive_desc_create\0":
        fn(*mut Handle, Handle, i32, i32, Handle, Handle, f32, f32, Handle);
    eltwise_backward = b"dnnl_eltwise_backward_primitive_desc_create\0":
        fn(*mut Handle, Handle, i32, Handle, Handle, Handle, f32, f32, Handle, Handle);
    matmul = b"dnnl_matmul_primitive_desc_create\0":
        fn(*mut Handle, Handle, Handle, Handle, Handle, Handle, Handle);
    description_query = b"dnnl_primitive_desc_query\0": fn(Handle, i32, i32, *mut c_void);
    description_destroy = b"dnnl_primitive_desc_destroy\0": fn(Handle);
    primitive_create = b"dnnl_primitive_create\0": fn(*mut Handle, Handle);
    primitive_destroy = b"dnnl_primitive_destroy\0": fn(Handle);
    execute = b"dnnl_primitive_execute\0": fn(Handle, Handle, i32, *const Argument);
}

// SAFETY: engine and stream live as long as the process; oneDNN's functions may be called from any
// thread, and every execution is waited for by its caller.
unsafe impl Send for Library {}
// SAFETY: as above.
unsafe impl Sync for Library {}

const CPU: i32 = 1;
const IN_ORDER: u32 = 1;

pub(crate) fn check(call: &'static str, status: Status) -> Result<(), Error> {
    match status {
        0 => Ok(()),
        status => Err(Error::Status { call, status }),
    }
}

/// OpenMP's threads would else wait actively for milliseconds after every call, in the time of whoever
/// comes next. Its runtime reads this once, when it is loaded; a user's own setting stays.
fn sleep_between_calls() {
    const POLICY: &str = "OMP_WAIT_POLICY";
    if std::env::var_os(POLICY).is_none() {
        std::env::set_var(POLICY, "passive");
    }
}

impl Library {
    /// The library, loaded once per process.
    pub fn get() -> Result<&'static Library, Error> {
        static LIBRARY: OnceLock<Result<Library, Error>> = OnceLock::new();
        LIBRARY
            .get_or_init(Self::load)
            .as_ref()
            .map_err(Clone::clone)
    }

    fn load() -> Result<Self, Error> {
        sleep_between_calls();
        let opened = libraries::open(&ONEDNN).map_err(Error::Absent)?;
        let mut library = Self::resolve(opened)?;
        // SAFETY: the results are written before they are used.
        unsafe {
            let engine = (library.engine_create)(&mut library.engine, CPU, 0);
            check("dnnl_engine_create", engine)?;
            let stream = (library.stream_create)(&mut library.stream, library.engine, IN_ORDER);
            check("dnnl_stream_create", stream)?;
        }
        Ok(library)
    }

    /// As `3.2.0`.
    pub fn version(&self) -> &str {
        &self.records()[0].version
    }

    /// What was loaded.
    pub fn records(&self) -> &[libraries::Library] {
        &self.opened.records
    }

    /// How many threads the next primitives that this thread executes use.
    pub(crate) fn use_threads(&self, count: usize) {
        // SAFETY: takes any positive number.
        unsafe { (self.set_threads)(i32::try_from(count).unwrap_or(i32::MAX)) }
    }

    /// The name of the kernel behind a primitive's description.
    pub(crate) fn implementation(&self, description: Handle) -> String {
        const IMPLEMENTATION: i32 = 8;
        let mut name: *const std::ffi::c_char = std::ptr::null();
        // SAFETY: this query writes a pointer to a string that lives as long as the description.
        unsafe {
            let to = (&raw mut name).cast();
            match (self.description_query)(description, IMPLEMENTATION, 0, to) {
                0 if !name.is_null() => CStr::from_ptr(name).to_string_lossy().into_owned(),
                _ => "unknown".to_owned(),
            }
        }
    }
}
