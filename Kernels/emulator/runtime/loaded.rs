//! Kernels of texts that come at run time, as the driver's modules do.

use std::ffi::c_void;

use machine::{Module, MOST_SHARED};

use crate::registry::{self, Refusal, Shape};

/// A kernel that nobody linked in.
pub struct Loaded {
    /// Its place among kernels, which know each other by addresses of host functions: that of a byte of its own.
    host: usize,
    name: String,
    /// The size of each.
    parameters: Vec<usize>,
}

impl Loaded {
    /// # Errors
    ///
    /// Where the parser refuses the text, or there is no such kernel in it.
    pub fn new(text: &str, name: &str) -> Result<Self, String> {
        let module = Module::load(text).map_err(|error| error.to_string())?;
        let program = module.program(name).map_err(|error| error.to_string())?;
        // Never freed: nothing else may get the address while the kernel is known.
        let host = Box::leak(Box::new(0u8)) as *const u8 as usize;
        let unit = registry::add_unit(Ok(vec![text.to_owned()]));
        registry::add_kernel(unit, host, name);
        registry::allow_shared(host, MOST_SHARED);
        let sizes = program.parameters.iter();
        Ok(Self {
            host,
            name: name.to_owned(),
            parameters: sizes.map(|(_, bytes)| *bytes as usize).collect(),
        })
    }

    /// The size of each parameter.
    pub fn parameters(&self) -> &[usize] {
        &self.parameters
    }

    /// Runs it to its end.
    pub fn launch(&self, shape: &Shape, arguments: &[Vec<u8>]) -> Result<(), String> {
        let passed: Vec<usize> = arguments.iter().map(Vec::len).collect();
        if passed != self.parameters {
            let (name, taken) = (&self.name, &self.parameters);
            return Err(format!(
                "'{name}' takes parameters of {taken:?} bytes, not {passed:?}"
            ));
        }
        let arguments: Vec<*const c_void> = arguments
            .iter()
            .map(|bytes| bytes.as_ptr().cast())
            .collect();
        // SAFETY: as many as the kernel takes, each of its size.
        let launched = unsafe { registry::launch(self.host, shape, arguments.as_ptr()) };
        launched.map_err(|refusal| match refusal {
            Refusal::UnknownKernel => format!("'{}' is not a kernel", self.name),
            Refusal::Invalid(reason) | Refusal::Failed(reason) => reason,
        })
    }
}
