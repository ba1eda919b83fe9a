//! cuTensorMapEncodeTiled, as the driver's entry point has it.

use std::ffi::{c_int, c_void};

use machine::TensorMap;

/// CUtensorMapDataType to the code that a map stores.
const KINDS: [u32; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 8, 11, 12, 13, 14, 15];

const SUCCESS: c_int = 0;
const INVALID_VALUE: c_int = 1;

/// # Safety
///
/// As the driver's: arrays of `rank` elements, strides of one fewer, and room for a map.
pub unsafe extern "C" fn encode_tiled(
    map: *mut u8,
    kind: c_int,
    rank: u32,
    address: *mut c_void,
    sizes: *const u64,
    strides: *const u64,
    box_sizes: *const u32,
    steps: *const u32,
    interleave: c_int,
    swizzle: c_int,
    _promotion: c_int,
    fill: c_int,
) -> c_int {
    let Some(kind) = usize::try_from(kind).ok().and_then(|kind| KINDS.get(kind)) else {
        return INVALID_VALUE;
    };
    if !(1..=5).contains(&rank) || interleave != 0 {
        return INVALID_VALUE;
    }
    let rank = rank as usize;
    // SAFETY: the caller's arrays have `rank` elements.
    let (sizes, strides, box_sizes, steps) = unsafe {
        (
            std::slice::from_raw_parts(sizes, rank).to_vec(),
            if rank > 1 {
                std::slice::from_raw_parts(strides, rank - 1).to_vec()
            } else {
                Vec::new()
            },
            std::slice::from_raw_parts(box_sizes, rank).to_vec(),
            std::slice::from_raw_parts(steps, rank),
        )
    };
    if steps.iter().any(|step| *step != 1) {
        return INVALID_VALUE;
    }
    let tensor = TensorMap {
        address: address as u64,
        kind: *kind,
        sizes,
        strides,
        box_sizes,
        swizzle: swizzle as u32,
        fills_nan: fill != 0,
    };
    match tensor.encode() {
        Ok(bytes) => {
            // SAFETY: the caller gives room for a map.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), map, bytes.len()) };
            SUCCESS
        }
        Err(_) => INVALID_VALUE,
    }
}
