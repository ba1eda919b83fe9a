//! The cuDNN library, opened once.

use std::ffi::{c_char, c_void, CStr};
use std::sync::OnceLock;

use libraries::{Opened, Symbols, CUDNN};

/// The oldest version with these descriptors and engines.
const LEAST_VERSION: usize = 90_500;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("{what}: {status}{}", if .detail.is_empty() { String::new() } else { format!(" ({detail})") })]
    Status {
        what: &'static str,
        status: String,
        detail: String,
    },
    #[error("cuDNN {version} has no engine for this graph: {last}")]
    NoEngine { version: String, last: String },
    #[error("{value} does not fit in cuDNN's 32-bit lengths and offsets")]
    TooLarge { value: i64 },
    #[error("{what}: {message}")]
    Cuda { what: &'static str, message: String },
}

type Status = i32;
pub(crate) type Handle = *mut c_void;
pub(crate) type RawDescriptor = *mut c_void;

macro_rules! functions {
    ($($field:ident = $symbol:literal : fn($($argument:ty),*) -> $result:ty;)*) => {
        pub(crate) struct Functions {
            $(pub(crate) $field: unsafe extern "C" fn($($argument),*) -> $result,)*
        }

        impl Functions {
            fn of(library: &Symbols) -> Result<Self, libraries::Error> {
                Ok(Self {
                    // SAFETY: the types are those of cuDNN 9's headers.
                    $($field: unsafe { library.get($symbol) }?,)*
                })
            }
        }
    };
}

functions! {
    version = b"cudnnGetVersion\0": fn() -> usize;
    error_string = b"cudnnGetErrorString\0": fn(Status) -> *const c_char;
    last_error = b"cudnnGetLastErrorString\0": fn(*mut c_char, usize) -> ();
    create = b"cudnnCreate\0": fn(*mut Handle) -> Status;
    destroy = b"cudnnDestroy\0": fn(Handle) -> Status;
    set_stream = b"cudnnSetStream\0": fn(Handle, *mut c_void) -> Status;
    create_descriptor = b"cudnnBackendCreateDescriptor\0": fn(i32, *mut RawDescriptor) -> Status;
    destroy_descriptor = b"cudnnBackendDestroyDescriptor\0": fn(RawDescriptor) -> Status;
    set_attribute = b"cudnnBackendSetAttribute\0":
        fn(RawDescriptor, i32, i32, i64, *const c_void) -> Status;
    get_attribute = b"cudnnBackendGetAttribute\0":
        fn(RawDescriptor, i32, i32, i64, *mut i64, *mut c_void) -> Status;
    finalize = b"cudnnBackendFinalize\0": fn(RawDescriptor) -> Status;
    execute = b"cudnnBackendExecute\0": fn(Handle, RawDescriptor, RawDescriptor) -> Status;
}

/// cuDNN, for as long as the process runs.
pub struct Library {
    pub(crate) functions: Functions,
    version: usize,
    opened: Opened,
}

/// The library, or why it is missing.
pub fn library() -> Result<&'static Library, &'static str> {
    static LIBRARY: OnceLock<Result<Library, String>> = OnceLock::new();
    LIBRARY.get_or_init(open).as_ref().map_err(String::as_str)
}

fn open() -> Result<Library, String> {
    let opened = libraries::open(&CUDNN).map_err(|error| error.to_string())?;
    let functions = Functions::of(&opened.symbols)
        .map_err(|error| format!("{} is not cuDNN 9: {error}", opened.file().display()))?;
    // SAFETY: takes nothing.
    let version = unsafe { (functions.version)() };
    let library = Library {
        functions,
        version,
        opened,
    };
    if version < LEAST_VERSION {
        let found = library.version();
        return Err(format!(
            "cuDNN {found} is too old; 9.5.0 or newer is needed"
        ));
    }
    Ok(library)
}

impl Library {
    /// Like "9.27.0".
    pub fn version(&self) -> &str {
        &self.records()[0].version
    }

    /// What was loaded, cuDNN first.
    pub fn records(&self) -> &[libraries::Library] {
        &self.opened.records
    }

    /// The value of masked scores: versions before 9.10 need a finite one.
    pub(crate) fn masked(&self) -> f32 {
        const INFINITE_SINCE: usize = 91_000;
        if self.version < INFINITE_SINCE {
            f32::MIN
        } else {
            f32::NEG_INFINITY
        }
    }

    pub(crate) fn check(&self, what: &'static str, status: Status) -> Result<(), Error> {
        if status == 0 {
            return Ok(());
        }
        let mut detail = [0 as c_char; 512];
        // SAFETY: the name is static; the message is written into the array and ends with a zero.
        let (name, detail) = unsafe {
            (self.functions.last_error)(detail.as_mut_ptr(), detail.len());
            (
                CStr::from_ptr((self.functions.error_string)(status)),
                CStr::from_ptr(detail.as_ptr()),
            )
        };
        Err(Error::Status {
            what,
            status: name.to_string_lossy().into_owned(),
            detail: detail.to_string_lossy().trim().to_owned(),
        })
    }
}
