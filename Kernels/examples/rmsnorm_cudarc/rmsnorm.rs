//! RMSNorm on CUDA from Rust, to start from: a cdylib that loads PTX with cudarc's driver API and launches it, in bf16.
//! The text after ? names the PTX, which may come from anything that compiles the kernel of `rmsnorm_kernel`:
//!
//!     nvcc -O3 -arch=compute_80 -ptx -o rmsnorm.ptx ../rmsnorm_kernel/rmsnorm.cu
//!     cargo build --release                      # Cargo.toml is beside this file; copy contender.rs there too
//!     bench_norms --op rmsnorm_fwd --contender mine=./target/release/librmsnorm.so?rmsnorm.ptx

#[rustfmt::skip] // Beside it where it is built.
mod contender;

use std::ffi::{c_char, c_void, CStr};
use std::ptr;

use contender::{refuse, Description, Problem, ABI_VERSION, BF16, CUDA};
use cudarc::driver::sys;

const THREADS: u32 = 256;

/// A kernel's parameters, and the kernel.
struct Work {
    module: sys::CUmodule,
    function: sys::CUfunction,
    rows: u32,
    x: u64,
    weight: u64,
    out: u64,
    columns: i64,
    epsilon: f32,
}

/// Null if it can do it, otherwise why not.
unsafe extern "C" fn supports(problem: *const Problem) -> *const c_char {
    // SAFETY: the harness passes a problem.
    let problem = unsafe { &*problem };
    // SAFETY: during the call.
    let bf16_only = ["x", "weight"]
        .iter()
        .all(|name| unsafe { problem.tensor(name).is_some_and(|it| it.dtype == BF16) });
    match problem.device == CUDA && bf16_only {
        true => ptr::null(),
        false => c"bf16 on CUDA only".as_ptr(),
    }
}

/// Loads the code into the context that is current.
fn load(path: &str) -> Result<(sys::CUmodule, sys::CUfunction), String> {
    let mut code = std::fs::read(path).map_err(|error| {
        format!("cannot read PTX from '{path}': {error}; name it after ? in --contender")
    })?;
    // Where the text ends.
    code.push(0);
    let (mut module, mut function) = (ptr::null_mut(), ptr::null_mut());
    // SAFETY: text that ends with a zero; results go to variables that outlive the calls.
    unsafe {
        let status = sys::cuModuleLoadData(&mut module, code.as_ptr().cast());
        status
            .result()
            .map_err(|error| format!("cuModuleLoadData: {error}"))?;
        let status = sys::cuModuleGetFunction(&mut function, module, c"rmsnorm".as_ptr());
        status
            .result()
            .map_err(|error| format!("no kernel 'rmsnorm': {error}"))?;
    }
    Ok((module, function))
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
        let path = CStr::from_ptr(problem.options).to_string_lossy();
        let (module, function) = match load(&path) {
            Ok(loaded) => loaded,
            Err(reason) => return refuse(error, room, &reason),
        };
        let work = Work {
            module,
            function,
            rows: *x.shape as u32,
            x: x.address as u64,
            weight: weight.address as u64,
            out: out.address as u64,
            columns: *x.shape.add(1),
            epsilon: problem.number("epsilon").unwrap_or(1e-6) as f32,
        };
        Box::into_raw(Box::new(work)).cast()
    }
}

/// The work: this is timed.
unsafe extern "C" fn enqueue(handle: *mut c_void, stream: *mut c_void) -> i32 {
    // SAFETY: a handle of `bind`; the kernel takes these five parameters.
    let status = unsafe {
        let work = &mut *handle.cast::<Work>();
        let mut parameters: [*mut c_void; 5] = [
            (&raw mut work.x).cast(),
            (&raw mut work.weight).cast(),
            (&raw mut work.out).cast(),
            (&raw mut work.columns).cast(),
            (&raw mut work.epsilon).cast(),
        ];
        sys::cuLaunchKernel(
            work.function,
            work.rows,
            1,
            1,
            THREADS,
            1,
            1,
            0,
            stream.cast(),
            parameters.as_mut_ptr(),
            ptr::null_mut(),
        )
    };
    status as i32
}

unsafe extern "C" fn destroy(handle: *mut c_void) {
    // SAFETY: a handle of `bind`, which nobody uses again. If unloading fails, the context is gone with the module.
    unsafe {
        let work = Box::from_raw(handle.cast::<Work>());
        let _ = sys::cuModuleUnload(work.module);
    }
}

struct Ops([*const c_char; 2]);

// SAFETY: it points to constants.
unsafe impl Sync for Ops {}

static OPS: Ops = Ops([c"rmsnorm_fwd".as_ptr(), ptr::null()]);

static LIBRARY: Description = Description {
    abi_version: ABI_VERSION,
    struct_bytes: size_of::<Description>() as u32,
    name: c"rmsnorm in Rust with cudarc".as_ptr(),
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
