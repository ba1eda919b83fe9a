//! What the hardware has room for.

/// The most shared memory that a block may have beside what the system keeps.
pub const MOST_SHARED: u32 = 232_448;
/// Of all parameters of a kernel.
pub const MOST_PARAMETER_BYTES: u64 = 32_764;
/// Of a thread.
pub const MOST_LOCAL_BYTES: u64 = 512 << 10;
pub const MOST_THREADS_IN_Z: u32 = 64;
pub const MOST_BLOCKS_IN_YZ: u32 = 65_535;
