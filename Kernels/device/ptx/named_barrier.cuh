// A block's 16 named barriers, for a subset of its warps; 0 is __syncthreads. One instruction per
// function.
#pragma once

#include <cstdint>

namespace device::ptx {

// Waits until this many threads, in whole warps, have called this or named_barrier_arrive. Orders
// memory accesses of those threads.
__device__ __forceinline__ void named_barrier_sync(std::uint32_t barrier, std::uint32_t threads) {
    asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

// Counts this thread's warp without waiting.
__device__ __forceinline__ void named_barrier_arrive(std::uint32_t barrier, std::uint32_t threads) {
    asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

// Waits as named_barrier_sync does; true in all threads if `value` is true in any.
__device__ __forceinline__ bool named_barrier_or(std::uint32_t barrier, std::uint32_t threads,
                                                 bool value) {
    int result;
    asm volatile(
        "{ .reg .pred in, out; setp.ne.s32 in, %1, 0;"
        " bar.red.or.pred out, %2, %3, in; selp.s32 %0, 1, 0, out; }"
        : "=r"(result)
        : "r"(static_cast<int>(value)), "r"(barrier), "r"(threads)
        : "memory");
    return result != 0;
}

}  // namespace device::ptx
