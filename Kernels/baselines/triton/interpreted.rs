//! A kernel in the PTX interpreter, which takes the device's place.

use runtime::{Function, Shape};

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
        let function = Function::load(text, &kernel.symbol);
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
        let shape = Shape {
            grid,
            block: [self.kernel.threads, 1, 1],
            cluster: [1; 3],
            dynamic_shared_bytes: self.kernel.shared_bytes,
            overlaps_previous: false,
        };
        // An argument is in the low bytes of its word.
        let words = self.kernel.words(arguments)?;
        let words: Vec<[u8; 8]> = words.into_iter().map(u64::to_le_bytes).collect();
        let sizes = self.function.parameters().iter();
        let arguments: Vec<&[u8]> = words
            .iter()
            .zip(sizes)
            .map(|(word, &bytes)| &word[..bytes.min(8)])
            .collect();
        let launched = self.function.launch(&shape, &arguments);
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
