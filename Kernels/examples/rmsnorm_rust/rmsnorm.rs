//! RMSNorm on the CPU, to start from: out[row, i] = x[row, i] / sqrt(mean(x[row]^2) + epsilon) * weight[i], in f32.
//!
//!     rustc --edition 2021 -O -C target-cpu=native --crate-type cdylib -o librmsnorm.so rmsnorm.rs

#[rustfmt::skip] // Beside it where it is built.
mod contender;

use std::ffi::{c_char, c_void};

use contender::{refuse, Description, Problem, ABI_VERSION, CPU, F32};

struct Work {
    x: *const f32,
    weight: *const f32,
    out: *mut f32,
    rows: usize,
    columns: usize,
    epsilon: f32,
}

/// Null if it can do it, otherwise why not.
unsafe extern "C" fn supports(problem: *const Problem) -> *const c_char {
    // SAFETY: the harness passes a problem.
    let problem = unsafe { &*problem };
    // SAFETY: during the call.
    let f32_only = ["x", "weight"]
        .iter()
        .all(|name| unsafe { problem.tensor(name).is_some_and(|it| it.dtype == F32) });
    match problem.device == CPU && f32_only {
        true => std::ptr::null(),
        false => c"f32 on the CPU only".as_ptr(),
    }
}

/// Everything that need not be timed.
unsafe extern "C" fn bind(problem: *const Problem, error: *mut c_char, room: usize) -> *mut c_void {
    // SAFETY: the harness passes a problem and room for a reason, and tensors of two axes.
    unsafe {
        let problem = &*problem;
        let tensors = ["x", "weight", "out"].map(|name| problem.tensor(name));
        let [Some(x), Some(weight), Some(out)] = tensors else {
            return refuse(error, room, "x, weight or out is missing");
        };
        let work = Work {
            x: x.address.cast(),
            weight: weight.address.cast(),
            out: out.address.cast(),
            rows: *x.shape as usize,
            columns: *x.shape.add(1) as usize,
            epsilon: problem.number("epsilon").unwrap_or(1e-6) as f32,
        };
        Box::into_raw(Box::new(work)).cast()
    }
}

/// The work: this is timed.
unsafe extern "C" fn enqueue(handle: *mut c_void, _stream: *mut c_void) -> i32 {
    // SAFETY: a handle of `bind`, and tensors of the sizes that it was told.
    let (work, x, weight, out) = unsafe {
        let work = &*handle.cast::<Work>();
        let elements = work.rows * work.columns;
        (
            work,
            std::slice::from_raw_parts(work.x, elements),
            std::slice::from_raw_parts(work.weight, work.columns),
            std::slice::from_raw_parts_mut(work.out, elements),
        )
    };
    for (x, out) in x.chunks(work.columns).zip(out.chunks_mut(work.columns)) {
        let mut sums = [0f32; 8];
        for part in x.chunks(8) {
            for (sum, value) in sums.iter_mut().zip(part) {
                *sum += value * value;
            }
        }
        let mean = sums.iter().sum::<f32>() / work.columns as f32;
        let scale = 1.0 / (mean + work.epsilon).sqrt();
        for ((out, x), weight) in out.iter_mut().zip(x).zip(weight) {
            *out = x * scale * weight;
        }
    }
    0
}

unsafe extern "C" fn destroy(handle: *mut c_void) {
    // SAFETY: a handle of `bind`, which nobody uses again.
    drop(unsafe { Box::from_raw(handle.cast::<Work>()) });
}

struct Ops([*const c_char; 2]);

// SAFETY: it points to constants.
unsafe impl Sync for Ops {}

static OPS: Ops = Ops([c"rmsnorm_fwd".as_ptr(), std::ptr::null()]);

static LIBRARY: Description = Description {
    abi_version: ABI_VERSION,
    struct_bytes: size_of::<Description>() as u32,
    name: c"rmsnorm in Rust".as_ptr(),
    version: c"1".as_ptr(),
    ops: OPS.0.as_ptr(),
    supports: Some(supports),
    bind: Some(bind),
    enqueue: Some(enqueue),
    facts: None,
    destroy: Some(destroy),
};

#[no_mangle]
pub extern "C" fn contender_library() -> *const Description {
    &LIBRARY
}
