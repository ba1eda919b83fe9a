//! The library, opened once.

use std::sync::OnceLock;

use libraries::{Opened, Symbols, CUDA_HEADERS, TRANSFORMER_ENGINE};

use crate::ffi::{self, Functions};
use crate::Function;

/// Transformer Engine, for as long as the process runs.
pub struct Library {
    functions: Functions,
    records: Vec<libraries::Library>,
    opened: Opened,
}

/// The library, or why it is missing.
pub fn library() -> Result<&'static Library, &'static str> {
    static LIBRARY: OnceLock<Result<Library, String>> = OnceLock::new();
    LIBRARY.get_or_init(open).as_ref().map_err(String::as_str)
}

fn open() -> Result<Library, String> {
    let opened = libraries::open(&TRANSFORMER_ENGINE).map_err(|error| error.to_string())?;
    let (headers, header_record) =
        libraries::folder(&CUDA_HEADERS).map_err(|error| error.to_string())?;
    // Where it looks first when it compiles, before what the machine happens to have.
    std::env::set_var(CUDA_HEADERS.variable, headers);
    let functions = functions(&opened.symbols).map_err(|error| {
        let file = opened.file().display();
        format!("{file} is not Transformer Engine 2: {error}")
    })?;
    let mut records = opened.records.clone();
    records.push(header_record);
    Ok(Library {
        functions,
        records,
        opened,
    })
}

fn functions(symbols: &Symbols) -> Result<Functions, String> {
    let address = |name: &[u8]| address(symbols, name);
    // A variable can select cuDNN's norms instead, which race by themselves.
    ffi::use_own_norms(
        address(b"nvte_enable_cudnn_norm_fwd\0")?,
        address(b"nvte_enable_cudnn_norm_bwd\0")?,
    )
    .map_err(|error| error.to_string())?;
    Ok(Functions {
        create_tensor: address(b"nvte_create_tensor\0")?,
        destroy_tensor: address(b"nvte_destroy_tensor\0")?,
        set_tensor: address(b"nvte_set_tensor_param_v2\0")?,
        tensor_bytes: address(b"nvte_tensor_size_bytes\0")?,
        operation: 0,
    })
}

/// Types are the bridge's business.
fn address(symbols: &Symbols, name: &[u8]) -> Result<usize, String> {
    // SAFETY: as a number, which any function's address is.
    let function: unsafe extern "C" fn() =
        unsafe { symbols.get(name) }.map_err(|error| error.to_string())?;
    Ok(function as usize)
}

impl Library {
    /// What was loaded or read, Transformer Engine first.
    pub fn records(&self) -> &[libraries::Library] {
        &self.records
    }

    pub(crate) fn functions(&self, function: Function) -> Result<Functions, String> {
        Ok(Functions {
            operation: address(&self.opened.symbols, function.symbol())?,
            ..self.functions
        })
    }
}
