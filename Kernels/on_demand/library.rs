//! A variant's `kernels.so`: exactly the bytes that were checked, opened from memory.

use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsRawFd, FromRawFd};
use std::sync::{LazyLock, Mutex};

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use serde::Deserialize;

use crate::{Built, Missing, Store, Wanted};

/// A kernel of a library that stays loaded: addresses of its functions, as in docs/ARTIFACTS.md.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CuteKernel {
    pub init: usize,
    pub load: usize,
    pub entry: usize,
    /// With the status, which comes last.
    pub argument_count: i32,
}

/// The kernels of a variant.
#[derive(Debug)]
pub struct CuteLibrary {
    pub built: Built,
    kernels: HashMap<String, CuteKernel>,
    refused: Vec<String>,
}

#[derive(Deserialize)]
struct Described {
    kernels: Vec<DescribedKernel>,
    /// What the library itself does not take.
    #[serde(default)]
    refused: Vec<String>,
}

#[derive(Deserialize)]
struct DescribedKernel {
    name: String,
    init: String,
    load: String,
    entry: String,
    argument_count: i32,
}

type Opened = Result<&'static CuteLibrary, Missing>;
static OPENED: LazyLock<Mutex<HashMap<String, Opened>>> = LazyLock::new(Mutex::default);

impl CuteLibrary {
    /// Opens the user's variant, once per process.
    pub fn open(wanted: &Wanted) -> Result<&'static Self, Missing> {
        let mut opened = OPENED.lock().unwrap_or_else(|error| error.into_inner());
        let open = || {
            Ok(&*Box::leak(Box::new(Self::of(
                Store::of_user().find(wanted)?,
            )?)))
        };
        opened
            .entry(wanted.to_string())
            .or_insert_with(open)
            .clone()
    }

    /// Opens a variant. It is never closed: kernels keep pointers to its code.
    pub fn of(built: Built) -> Result<Self, Missing> {
        let described = built.read("kernels.json")?;
        let described: Described = serde_json::from_slice(&described)
            .map_err(|error| built.unusable(format!("kernels.json: {error}")))?;
        let code = built.read("kernels.so")?;
        let library = open(&code).map_err(|reason| built.unusable(reason))?;
        let mut kernels = HashMap::new();
        for kernel in described.kernels {
            let address = |symbol: &str| {
                // SAFETY: the address is only looked up here; it is called by the type that ARTIFACTS.md has for it.
                let found = unsafe { library.get::<*const ()>(symbol.as_bytes()) };
                let found = found.map(|symbol| symbol.into_raw() as usize);
                found.map_err(|error| built.unusable(format!("kernels.so: {error}")))
            };
            let found = CuteKernel {
                init: address(&kernel.init)?,
                load: address(&kernel.load)?,
                entry: address(&kernel.entry)?,
                argument_count: kernel.argument_count,
            };
            kernels.insert(kernel.name, found);
        }
        std::mem::forget(library);
        Ok(Self {
            built,
            kernels,
            refused: described.refused,
        })
    }

    /// A kernel, or why the variant is without it.
    pub fn kernel(&self, name: &str) -> Result<CuteKernel, String> {
        self.kernels.get(name).copied().ok_or_else(|| {
            let refused = match &self.refused[..] {
                [] => "the recipe does not have it".to_owned(),
                refused => format!("the library refused {}", refused.join(", ")),
            };
            format!("{name} is not in {}: {refused}", self.built.wanted)
        })
    }
}

/// Loads a shared library from memory that nobody else can change.
fn open(code: &[u8]) -> Result<Library, String> {
    // SAFETY: the name ends with a nul; the result is checked.
    let descriptor = unsafe { libc::memfd_create(c"kernels.so".as_ptr(), libc::MFD_CLOEXEC) };
    if descriptor < 0 {
        return Err(format!("memfd_create: {}", std::io::Error::last_os_error()));
    }
    // SAFETY: a new descriptor that nobody else has.
    let mut file = unsafe { File::from_raw_fd(descriptor) };
    file.write_all(code)
        .map_err(|error| format!("kernels.so: {error}"))?;
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    // SAFETY: initialisers of the CUDA runtime and of code that the pinned recipe generated.
    let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) };
    // Another file under this number would have its name, and the loader would take it for this one.
    std::mem::forget(file);
    library.map_err(|error| format!("kernels.so: {error}"))
}
