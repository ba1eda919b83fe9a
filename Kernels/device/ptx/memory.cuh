// Global-memory accesses of 8 and 16 bytes: one instruction per function.
#pragma once

#include <cstdint>

namespace device::ptx {

// With the default policy: for streams, 2 to 8 % faster than the hints on an H200 whose L2 is full
// of other kernels' lines, as it is between the layers of a model. Of L1::no_allocate too: 5 %
// where rows are written as well. Coherent (not .nc), so in-place kernels may use it.
__device__ __forceinline__ uint4 load_16(const void* address) {
    uint4 value;
    asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
                 : "l"(address)
                 : "memory");
    return value;
}

// The same with 8 bytes, where elements become twice as wide on the way.
__device__ __forceinline__ uint2 load_8(const void* address) {
    uint2 value;
    asm volatile("ld.global.v2.u32 {%0, %1}, [%2];"
                 : "=r"(value.x), "=r"(value.y)
                 : "l"(address)
                 : "memory");
    return value;
}

// For data that no thread of the grid writes and many rows share (weights): kept in L1. Volatile,
// or the compiler moves the loads out of the loop over rows and runs out of registers.
__device__ __forceinline__ uint4 load_16_shared_by_rows(const void* address) {
    uint4 value;
    asm volatile("ld.global.nc.L1::evict_last.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
                 : "l"(address));
    return value;
}

// For data that no thread of the grid writes, with the default policy. Volatile for the same
// reason.
__device__ __forceinline__ uint4 load_16_constant(const void* address) {
    uint4 value;
    asm volatile("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
                 : "l"(address));
    return value;
}

// With the default policy; see load_16.
__device__ __forceinline__ void store_16(void* address, uint4 value) {
    asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(address), "r"(value.x),
                 "r"(value.y), "r"(value.z), "r"(value.w)
                 : "memory");
}

// The same with 8 bytes, where elements become half as wide on the way.
__device__ __forceinline__ void store_8(void* address, uint2 value) {
    asm volatile("st.global.v2.u32 [%0], {%1, %2};" ::"l"(address), "r"(value.x), "r"(value.y)
                 : "memory");
}

}  // namespace device::ptx
