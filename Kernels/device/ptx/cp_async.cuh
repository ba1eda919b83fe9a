// Asynchronous 16-byte copies from global to shared memory, in groups that complete in order: one
// instruction per function.
#pragma once

#include <cstdint>

#include "Kernels/device/ptx/memory.cuh"

namespace device::ptx {

// Bypasses L1, for data that is read once; L2 fetches the rest of the 128-byte line with it.
__device__ __forceinline__ void copy_async_16(uint32_t shared, const void* global) {
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" ::"r"(shared), "l"(global)
                 : "memory");
}

// The same, or zeros if `valid` is false; then `global` is not read.
__device__ __forceinline__ void copy_async_16_or_zero(uint32_t shared, const void* global,
                                                      bool valid) {
    const int bytes = valid ? 16 : 0;
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(shared),
                 "l"(global), "r"(bytes)
                 : "memory");
}

// The same without the rest of the line.
__device__ __forceinline__ void copy_async_16_alone_or_zero(uint32_t shared, const void* global,
                                                            bool valid) {
    const int bytes = valid ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared), "l"(global),
                 "r"(bytes)
                 : "memory");
}

// Commits the group of this thread's copies since the last call; it may be empty.
__device__ __forceinline__ void commit_copies() {
    asm volatile("cp.async.commit_group;" ::: "memory");
}

// Returns when all but the newest `kPending` groups of this thread have arrived. Other threads see
// the data after a barrier.
template <int kPending>
__device__ __forceinline__ void wait_for_copies() {
    asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

}  // namespace device::ptx
