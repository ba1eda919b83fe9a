//! A kernel in the PTX interpreter, which takes the device's place.

use runtime::Function;

use crate::{Archive, Argument, Kernel, TritonError};

/// Loaded from its PTX.
pub struct Loaded {
    kernel: Kernel,
    function: Function,
}

fn interpreter(call: &'static str) -> impl Fn(String) -> TritonError {
    move |status| TritonError::Driver { call, status }
}

impl Loaded {
    /// Loads a kernel's PTX; the interpreter refuses what it does not know.
    pub fn new(archive: &Archive, kernel: &Kernel) -> Result<Self, TritonError> {
        let text = std::str::from_utf8(archive.code(kernel))
            .map_err(|_| TritonError::Archive(format!("{} is not PTX", kernel.name)))?;
        let function = Function::load(text, &kernel.symbol, kernel.shared_bytes);
        Ok(Self {
            kernel: kernel.clone(),
            function: function.map_err(interpreter("load PTX"))?,
        })
    }

    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// Runs one launch to its end.
    pub fn launch(
        &self,
        grid: [u32; 3],
        arguments: &[Argument],
        _stream: usize,
    ) -> Result<(), TritonError> {
        let words = self.kernel.words(arguments)?;
        let launched = self.function.launch(grid, self.kernel.threads, &words);
        launched.map_err(interpreter("interpret"))
    }
}

/// The first of several equivalent launches, as there is no time to choose by.
pub fn fastest(
    candidates: Vec<Loaded>,
    _grid: [u32; 3],
    _arguments: &[Argument],
    _stream: usize,
) -> Result<Option<(Loaded, f32)>, TritonError> {
    Ok(candidates
        .into_iter()
        .next()
        .map(|candidate| (candidate, f32::NAN)))
}
