//! `contender.h` for Rust: race your own kernel in Head-to-Head, from a `cdylib` in one file.
//!
//! Copy this file next to yours (`mod contender;`); it depends on nothing. The header says when each function is
//! called and how long what it gets and returns stays valid.

#![allow(dead_code, reason = "a library need not use all of it")]

use std::ffi::{c_char, c_void, CStr};

/// What this file describes.
pub const ABI_VERSION: u32 = 1;

pub const INPUT: i32 = 0;
pub const OUTPUT: i32 = 1;
pub const IN_OUT: i32 = 2;

pub const F32: i32 = 0;
pub const F16: i32 = 1;
pub const BF16: i32 = 2;
pub const FP8_E4M3: i32 = 3;
pub const E8M0: i32 = 4;
pub const I32: i32 = 5;
pub const I64: i32 = 6;
pub const MXFP8: i32 = 7;
pub const NVFP4: i32 = 8;
/// Only for oracles.
pub const F64: i32 = 9;
pub const MXFP4: i32 = 10;
pub const FP8_UE8M0: i32 = 11;

pub const CPU: i32 = 0;
pub const CUDA: i32 = 1;

#[derive(Clone, Copy)]
#[repr(C)]
pub struct Tensor {
    pub name: *const c_char,
    pub role: i32,
    pub dtype: i32,
    pub rank: i64,
    pub shape: *const i64,
    /// In elements.
    pub strides: *const i64,
    pub bytes: u64,
    /// Null in `supports`.
    pub address: *mut c_void,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct Axis {
    pub name: *const c_char,
    pub text: *const c_char,
    /// NaN if the text is not a number.
    pub number: f64,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct Problem {
    pub struct_bytes: u32,
    pub abi_version: u32,
    pub op: *const c_char,
    pub dtype: *const c_char,
    pub axes: *const Axis,
    pub axis_count: u64,
    pub tensors: *const Tensor,
    pub tensor_count: u64,
    pub device: i32,
    pub multiprocessors: i32,
    pub arch: *const c_char,
    pub options: *const c_char,
    pub json: *const c_char,
}

pub type Supports = unsafe extern "C" fn(*const Problem) -> *const c_char;
pub type Bind = unsafe extern "C" fn(*const Problem, *mut c_char, usize) -> *mut c_void;
pub type Enqueue = unsafe extern "C" fn(*mut c_void, *mut c_void) -> i32;
pub type Facts = unsafe extern "C" fn(*mut c_void) -> *const c_char;
pub type Destroy = unsafe extern "C" fn(*mut c_void);
/// The one function that a library exports, as `contender_library`.
pub type Library = unsafe extern "C" fn() -> *const Description;
pub type Answer = unsafe extern "C" fn(*const Problem, u64, u64) -> i32;
/// The one function that an oracle exports, as `contender_oracle`.
pub type Oracle = unsafe extern "C" fn() -> *const OracleDescription;

#[derive(Clone, Copy)]
#[repr(C)]
pub struct Description {
    pub abi_version: u32,
    pub struct_bytes: u32,
    pub name: *const c_char,
    pub version: *const c_char,
    /// Ended by null; null if `supports` decides alone.
    pub ops: *const *const c_char,
    pub supports: Option<Supports>,
    pub bind: Option<Bind>,
    pub enqueue: Option<Enqueue>,
    pub facts: Option<Facts>,
    pub destroy: Option<Destroy>,
}

// SAFETY: it only points to what the library keeps for as long as it is loaded.
unsafe impl Sync for Description {}

/// The correct answers of an operation that the harness does not know, in f64 on the CPU.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct OracleDescription {
    pub abi_version: u32,
    pub struct_bytes: u32,
    pub name: *const c_char,
    pub version: *const c_char,
    /// Ended by null; null if it answers any.
    pub ops: *const *const c_char,
    pub answer: Option<Answer>,
}

// SAFETY: it only points to what the library keeps for as long as it is loaded.
unsafe impl Sync for OracleDescription {}

impl Problem {
    /// The tensor of that name.
    ///
    /// # Safety
    /// The problem is one that the harness passed, during that call.
    pub unsafe fn tensor(&self, name: &str) -> Option<&Tensor> {
        // SAFETY: the harness passes as many tensors as it says, each with a name.
        unsafe {
            let tensors = std::slice::from_raw_parts(self.tensors, self.tensor_count as usize);
            let named =
                |tensor: &&Tensor| CStr::from_ptr(tensor.name).to_bytes() == name.as_bytes();
            tensors.iter().find(named)
        }
    }

    /// The number of that name.
    ///
    /// # Safety
    /// The problem is one that the harness passed, during that call.
    pub unsafe fn number(&self, name: &str) -> Option<f64> {
        // SAFETY: the harness passes as many axes as it says, each with a name.
        unsafe {
            let axes = std::slice::from_raw_parts(self.axes, self.axis_count as usize);
            let named = |axis: &&Axis| CStr::from_ptr(axis.name).to_bytes() == name.as_bytes();
            let axis = axes.iter().find(named)?;
            (!axis.number.is_nan()).then_some(axis.number)
        }
    }
}

/// Writes a reason where `bind` reports it, and returns the null that `bind` then returns.
///
/// # Safety
/// `error` and `error_bytes` are those that the harness passed.
pub unsafe fn refuse(error: *mut c_char, error_bytes: usize, reason: &str) -> *mut c_void {
    let length = reason.len().min(error_bytes.saturating_sub(1));
    if error_bytes > 0 {
        // SAFETY: the harness passes that many bytes to write to.
        unsafe {
            std::ptr::copy_nonoverlapping(reason.as_ptr(), error.cast(), length);
            *error.add(length) = 0;
        }
    }
    std::ptr::null_mut()
}
