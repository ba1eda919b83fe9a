//! The bridge to the kernels of the faulty contenders.

#[cxx::bridge(namespace = "harness_faults")]
mod ffi {
    unsafe extern "C++" {
        include!("Kernels/benchmarks/harness/faults/cuda/faults.h");

        fn launch(
            x: usize,
            w: usize,
            y: usize,
            rows: usize,
            columns: usize,
            mode: u32,
            stream: usize,
        ) -> Result<()>;
        fn memoise(
            x: usize,
            w: usize,
            y: usize,
            rows: usize,
            columns: usize,
            inputs: usize,
            answers: usize,
            half: bool,
            stream: usize,
        ) -> Result<()>;
        fn aside(
            x: usize,
            w: usize,
            y: usize,
            rows: usize,
            columns: usize,
            scratch: usize,
            host_waits: bool,
            stream: usize,
        ) -> Result<()>;
        fn pinned(
            x: usize,
            w: usize,
            y: usize,
            rows: usize,
            columns: usize,
            pin: bool,
            stream: usize,
        ) -> Result<()>;
        fn reserve_cache() -> Result<()>;
        fn allocate(bytes: usize) -> Result<usize>;
        fn copy(to: usize, from: usize, bytes: usize, stream: usize) -> Result<()>;
    }
}

pub use ffi::{allocate, copy, reserve_cache};

/// What the kernel does; `faults.cu` repeats the order.
#[derive(Clone, Copy, Debug)]
#[repr(u32)]
pub enum Mode {
    Honest,
    WrongResult,
    NotANumber,
    UnwrittenTail,
    OutOfBounds,
    InputMutation,
    OtherStream,
    IllegalAddress,
    InfiniteLoop,
    OnePercentMore,
    Slow,
    SensesNan,
    SensesGarbage,
    RightEnds,
    LowPrecisionTail,
    FirstHalf,
}

/// Device addresses and sizes of one problem.
#[derive(Clone, Copy, Debug)]
pub struct Work {
    pub x: usize,
    pub w: usize,
    pub y: usize,
    pub rows: usize,
    pub columns: usize,
}

/// Enqueues the work, done only where `inputs`, those of the last call, have changed; `answers`
/// are the last ones. With `half`, the first half is always computed.
pub fn memoise(
    work: &Work,
    inputs: usize,
    answers: usize,
    half: bool,
    stream: usize,
) -> Result<(), cxx::Exception> {
    let Work {
        x,
        w,
        y,
        rows,
        columns,
    } = *work;
    ffi::memoise(x, w, y, rows, columns, inputs, answers, half, stream)
}

/// Does the work on a stream of its own, into `scratch`, and enqueues a copy on the given one, for
/// which either that stream or the host waits.
pub fn aside(
    work: &Work,
    scratch: usize,
    host_waits: bool,
    stream: usize,
) -> Result<(), cxx::Exception> {
    let Work {
        x,
        w,
        y,
        rows,
        columns,
    } = *work;
    ffi::aside(x, w, y, rows, columns, scratch, host_waits, stream)
}

/// Enqueues the work; with `pin`, the cache is asked to keep all inputs.
pub fn pinned(work: &Work, pin: bool, stream: usize) -> Result<(), cxx::Exception> {
    let Work {
        x,
        w,
        y,
        rows,
        columns,
    } = *work;
    ffi::pinned(x, w, y, rows, columns, pin, stream)
}

/// Enqueues the work on `stream`.
pub fn launch(work: &Work, mode: Mode, stream: usize) -> Result<(), cxx::Exception> {
    ffi::launch(
        work.x,
        work.w,
        work.y,
        work.rows,
        work.columns,
        mode as u32,
        stream,
    )
}
