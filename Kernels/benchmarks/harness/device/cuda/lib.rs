//! The bridge to the harness's own CUDA kernels, CUPTI's tracer and NVTX.
//!
//! Deliberately thin: every function crosses unchanged and returns CUDA's error as text. The safe
//! interface is crate `device`, the only user.

#![expect(
    clippy::missing_safety_doc,
    clippy::too_many_arguments,
    reason = "of the glue that cxx generates"
)]

#[cxx::bridge(namespace = "harness_device")]
mod ffi {
    unsafe extern "C++" {
        include!("Kernels/benchmarks/harness/device/cuda/kernels.h");
        include!("Kernels/benchmarks/harness/device/cuda/tracer.h");

        /// Device memory that the reductions need.
        fn scratch_bytes() -> usize;

        /// Fills with uniform values. Enqueues only.
        ///
        /// # Safety
        /// `address` is device memory of `elements` elements of `dtype`; `stream` is a live stream.
        unsafe fn fill_uniform(
            address: usize,
            elements: u64,
            dtype: u32,
            key: u64,
            low: f32,
            high: f32,
            stream: usize,
        ) -> Result<()>;

        /// Fills with whole numbers below `below`. Enqueues only.
        ///
        /// # Safety
        /// As for `fill_uniform`.
        unsafe fn fill_index(
            address: usize,
            elements: u64,
            dtype: u32,
            key: u64,
            below: u32,
            stream: usize,
        ) -> Result<()>;

        /// Fills with uniform values in ranges by slot, times factors by column. Enqueues only.
        ///
        /// # Safety
        /// As for `fill_uniform`; `ranges`, and `levels` and `factors` unless 0, are device memory
        /// with an entry for every level, slot and column.
        unsafe fn fill_shaped(
            address: usize,
            elements: u64,
            dtype: u32,
            key: u64,
            ranges: usize,
            levels: usize,
            factors: usize,
            outer: u64,
            inner: u64,
            run: u64,
            columns: u64,
            stream: usize,
        ) -> Result<()>;

        /// Offset of the first byte that is not `value`, or one beyond the end. Enqueues only.
        ///
        /// # Safety
        /// `address` is device memory of `bytes`; `scratch` of `scratch_bytes()`; `result` is pinned
        /// host memory of one word.
        unsafe fn first_byte_not(
            address: usize,
            bytes: u64,
            value: u8,
            scratch: usize,
            result: usize,
            stream: usize,
        ) -> Result<()>;

        /// The same for short pieces, all at once. Enqueues only.
        ///
        /// # Safety
        /// As for `gather`; `results` is pinned host memory of `count` words.
        unsafe fn first_bytes_not(
            pieces: usize,
            count: u32,
            value: u8,
            results: usize,
            stream: usize,
        ) -> Result<()>;

        /// Counts what is not finite. Enqueues only.
        ///
        /// # Safety
        /// `address` is device memory of `elements` elements of `dtype`, which is a float; `scratch` as
        /// above; `result` is pinned host memory with room for a [`FoundNonFinite`].
        unsafe fn non_finite(
            address: usize,
            elements: u64,
            dtype: u32,
            scratch: usize,
            result: usize,
            stream: usize,
        ) -> Result<()>;

        /// Sum of the checksum's words. Enqueues only.
        ///
        /// # Safety
        /// As for `first_byte_not`.
        unsafe fn checksum_sum(
            address: usize,
            bytes: u64,
            scratch: usize,
            result: usize,
            stream: usize,
        ) -> Result<()>;

        /// Copies pieces of device memory to pinned host memory. Enqueues only.
        ///
        /// # Safety
        /// `pieces` is pinned host memory of `count` times three words: an address in device memory, its
        /// length in bytes, and where they go in `result`, which is pinned host memory, too.
        unsafe fn gather(pieces: usize, count: u32, result: usize, stream: usize) -> Result<()>;

        /// Compares element by element, in tiles of `step`. Enqueues only.
        ///
        /// # Safety
        /// Both tensors are device memory of `elements` elements of `dtype`; `scratch` as above;
        /// `results` is pinned host memory with room for a [`Compared`] per tile.
        unsafe fn compare(
            actual: usize,
            reference: usize,
            elements: u64,
            step: u64,
            dtype: u32,
            absolute: f64,
            relative: f64,
            scratch: usize,
            results: usize,
            stream: usize,
        ) -> Result<()>;

        /// Takes back what work may have asked of the L2.
        ///
        /// # Safety
        /// `stream` is a live stream of the current context.
        unsafe fn release_l2(stream: usize) -> Result<()>;

        /// Replaces the contents of the L2 by clean lines. Enqueues only.
        ///
        /// # Safety
        /// `buffer` is device memory of `bytes`; `scratch` as above.
        unsafe fn flush_l2(buffer: usize, bytes: u64, scratch: usize, stream: usize) -> Result<()>;

        /// Holds the stream until the flag is set or the limit has passed. Enqueues only.
        ///
        /// # Safety
        /// Both words are pinned host memory that outlives the kernel.
        unsafe fn hold(flag: usize, outcome: usize, limit_ns: u64, stream: usize) -> Result<()>;

        /// Device memory of the clock stamps; zero at first.
        fn stamp_bytes() -> usize;

        /// Stamps the clocks before the work. Enqueues only.
        ///
        /// # Safety
        /// `stamps` is device memory of `stamp_bytes()`.
        unsafe fn stamp_head(
            stamps: usize,
            multiprocessors: u32,
            epoch: u64,
            stream: usize,
        ) -> Result<()>;

        /// Stamps them after it and writes {cycles, nanoseconds}. Enqueues only.
        ///
        /// # Safety
        /// As for `stamp_head`; `result` is pinned host memory of two words.
        unsafe fn stamp_tail(
            stamps: usize,
            multiprocessors: u32,
            epoch: u64,
            window_ns: u64,
            result: usize,
            stream: usize,
        ) -> Result<()>;

        /// Runs for a known time. Enqueues only.
        ///
        /// # Safety
        /// `stream` is a live stream of the current context.
        #[namespace = "harness_work"]
        unsafe fn spin(duration_ns: u64, stream: usize) -> Result<()>;

        /// Loads CUPTI.
        fn tracer_open(path: &CxxString) -> Result<()>;
        /// Starts recording.
        fn tracer_start() -> Result<()>;
        /// Stops recording; the number of records, sorted by start.
        fn tracer_stop() -> Result<usize>;
        /// CUPTI's number of the stream of one record.
        fn tracer_stream(record: usize) -> Result<u32>;
        /// Whether it is a node of a graph.
        fn tracer_in_graph(record: usize) -> Result<bool>;
        /// Start of one record.
        fn tracer_start_ns(record: usize) -> Result<u64>;
        /// End of one record.
        fn tracer_end_ns(record: usize) -> Result<u64>;
        /// Kernel symbol of one record, `memcpy` or `memset`.
        fn tracer_name(record: usize) -> Result<UniquePtr<CxxString>>;
        /// What the harness's own kernel symbols start with.
        fn own_kernel_prefix() -> UniquePtr<CxxString>;

        /// Opens a named range for profilers.
        fn range_push(label: &CxxString);
        /// Closes it.
        fn range_pop();
    }
}

pub use ffi::*;

/// `NonFinite` of `kernels.h`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct FoundNonFinite {
    pub count: u64,
    pub first: u64,
}

/// `Comparison` of `kernels.h`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Compared {
    pub max_abs: f64,
    pub sum_squared_error: f64,
    pub sum_squared_reference: f64,
    pub non_finite: u64,
    pub over_limit: u64,
    pub first_over: u64,
}
