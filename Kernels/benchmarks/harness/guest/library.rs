//! A loaded library: its functions, checked once, and called.

use std::ffi::{c_char, CStr};
use std::path::Path;

use contender_abi as abi;
use libloading::os::unix::{Library as Handle, RTLD_LOCAL, RTLD_NOW};
use serde_json::Value;

use crate::statement::{Passed, Statement};

/// What a library exports, and what that returns, in the header.
const FUNCTION: &str = "contender_library";
const DESCRIPTION: &str = "contender_description";
/// For the reason why `bind` refuses.
const ERROR_BYTES: usize = 1024;
/// More than a row should carry.
const FACTS_BYTES: usize = 4096;

pub struct Library {
    description: abi::Description,
    pub name: String,
    pub version: String,
    ops: Option<Vec<String>>,
    /// Its code must stay while anything is called; none if it is linked into this program.
    _handle: Option<Handle>,
}

/// What `bind` returned, with everything it was given.
pub struct Work {
    handle: *mut std::ffi::c_void,
    _passed: Passed,
}

/// Loads a library and returns the description that one of its functions returns, if it is of this version and as
/// large as `D`, which is `name` in the header; the error is a sentence.
///
/// # Safety
/// The header says that `function` returns a pointer to `D`.
pub unsafe fn describe<D: Copy>(
    path: &Path,
    function: &str,
    name: &str,
) -> Result<(Handle, D), String> {
    // SAFETY: running a stranger's code is the purpose; what it may do is up to the process.
    let handle = unsafe { Handle::open(Some(path), RTLD_NOW | RTLD_LOCAL) }
        .map_err(|error| format!("cannot be loaded: {error}"))?;
    // SAFETY: the caller's.
    let describe = unsafe { handle.get::<unsafe extern "C" fn() -> *const D>(function.as_bytes()) };
    let describe = describe
        .map_err(|_| format!("exports no function {function}(): see Kernels/contender.h"))?;
    // SAFETY: as above.
    let description = unsafe { checked(describe(), function, name) }?;
    Ok((handle, description))
}

/// # Safety
/// Null, or a description as the header has it, of any version.
unsafe fn checked<D: Copy>(description: *const D, function: &str, name: &str) -> Result<D, String> {
    if description.is_null() {
        return Err(format!("{function}() returned NULL"));
    }
    // SAFETY: every version begins with these two numbers.
    let [version, bytes] = unsafe { *description.cast::<[u32; 2]>() };
    if version != abi::ABI_VERSION {
        return Err(format!(
            "was built for version {version} of contender.h, and this program has version {}: build it again \
             with this program's header",
            abi::ABI_VERSION
        ));
    }
    let expected = size_of::<D>();
    if (bytes as usize) < expected {
        return Err(format!(
            "describes itself in {bytes} bytes, where version {version} has {expected}: set struct_bytes to \
             sizeof({name})"
        ));
    }
    // SAFETY: it says that it is as large.
    Ok(unsafe { *description })
}

impl Library {
    /// Loads a library and checks what it says about itself; the error is a sentence.
    pub fn open(path: &Path) -> Result<Self, String> {
        // SAFETY: the header says so.
        let (handle, description) = unsafe { describe(path, FUNCTION, DESCRIPTION) }?;
        Self::new(description, Some(handle))
    }

    /// The same for one that is linked into this program.
    ///
    /// # Safety
    /// The function is as the header has it.
    pub unsafe fn linked(library: abi::Library) -> Result<Self, String> {
        // SAFETY: the caller's.
        let description = unsafe { checked(library(), FUNCTION, DESCRIPTION) }?;
        Self::new(description, None)
    }

    fn new(description: abi::Description, handle: Option<Handle>) -> Result<Self, String> {
        for (name, missing) in [
            ("bind", description.bind.is_none()),
            ("enqueue", description.enqueue.is_none()),
        ] {
            if missing {
                return Err(format!("has no function {name}()"));
            }
        }
        // SAFETY: texts and a list that the header describes.
        unsafe {
            Ok(Self {
                name: text(description.name).unwrap_or_default(),
                version: text(description.version).unwrap_or_default(),
                ops: list(description.ops),
                description,
                _handle: handle,
            })
        }
    }

    /// The reason why it does not solve a problem, if it does not.
    pub fn obstacle(&self, statement: &Statement) -> Option<String> {
        let op = &statement.op;
        if let Some(ops) = self.ops.as_ref().filter(|ops| !ops.contains(op)) {
            return Some(format!("solves {}, not {op}", ops.join(", ")));
        }
        let passed = Passed::new(statement, &vec![0; statement.tensors.len()]);
        let supports = self.description.supports?;
        // SAFETY: the structures live until it returns.
        unsafe { text(supports(&passed.problem)) }
    }

    pub fn bind(&self, statement: &Statement, addresses: &[usize]) -> Result<Work, String> {
        let passed = Passed::new(statement, addresses);
        let mut error = vec![0u8; ERROR_BYTES];
        let bind = self.description.bind.ok_or("has no function bind()")?;
        // SAFETY: the structures live as long as the work, and the error has room for what we say.
        let handle = unsafe {
            bind(
                &passed.problem,
                error.as_mut_ptr().cast::<c_char>(),
                error.len(),
            )
        };
        if handle.is_null() {
            let end = error.iter().position(|byte| *byte == 0);
            let reason = String::from_utf8_lossy(&error[..end.unwrap_or(error.len())]);
            return Err(match reason.trim() {
                "" => "bind() returned NULL without a reason".into(),
                reason => format!("bind() refused: {reason}"),
            });
        }
        Ok(Work {
            handle,
            _passed: passed,
        })
    }

    /// Does the work once; the error is the library's code.
    pub fn enqueue(&self, work: &Work, stream: usize) -> Result<(), i32> {
        match self.description.enqueue {
            // SAFETY: a handle of this library, and a stream of the device that its tensors are on.
            Some(enqueue) => match unsafe { enqueue(work.handle, stream as *mut _) } {
                0 => Ok(()),
                code => Err(code),
            },
            None => Err(-1),
        }
    }

    /// What it says about its work: an object, or what is wrong with it.
    pub fn facts(&self, work: &Work) -> Value {
        let Some(facts) = self.description.facts else {
            return Value::Null;
        };
        // SAFETY: a handle of this library.
        let Some(text) = (unsafe { text(facts(work.handle)) }) else {
            return Value::Null;
        };
        if text.len() > FACTS_BYTES {
            return format!("{} bytes of facts are not kept", text.len()).into();
        }
        match serde_json::from_str::<Value>(&text) {
            Ok(facts) if facts.is_object() => facts,
            _ => format!(
                "not a JSON object: {}",
                text.chars().take(200).collect::<String>()
            )
            .into(),
        }
    }

    pub fn destroy(&self, work: Work) {
        if let Some(destroy) = self.description.destroy {
            // SAFETY: a handle of this library, which nobody uses again.
            unsafe { destroy(work.handle) };
        }
    }
}

/// # Safety
/// Null, or text that ends with a zero.
pub unsafe fn text(text: *const c_char) -> Option<String> {
    // SAFETY: the caller's.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text).to_string_lossy().into_owned() })
}

/// # Safety
/// Null, or a list of texts that ends with null.
pub unsafe fn list(mut items: *const *const c_char) -> Option<Vec<String>> {
    if items.is_null() {
        return None;
    }
    let mut texts = Vec::new();
    // SAFETY: the caller's.
    unsafe {
        while let Some(item) = text(*items) {
            texts.push(item);
            items = items.add(1);
        }
    }
    Some(texts)
}
