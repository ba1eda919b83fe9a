// Global-memory accesses of 16 bytes with cache hints: one instruction per function.
#pragma once

#include <cstdint>

namespace device::ptx {

// For data that is read once: leaves L1 to what is read again. Coherent (not .nc), so in-place
// kernels may use it.
__device__ __forceinline__ uint4 load_16_once(const void* address) {
    uint4 value;
    asm volatile("ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
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

// For data that this grid does not read again: written lines leave L2 first.
__device__ __forceinline__ void store_16_once(void* address, uint4 value) {
    asm volatile("st.global.cs.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(address), "r"(value.x),
                 "r"(value.y), "r"(value.z), "r"(value.w)
                 : "memory");
}

}  // namespace device::ptx
