// Copies of boxes of a matrix by the copy engine, described by a tensor map, and who waits for
// whom.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "Kernels/device/ptx/mbarrier.cuh"

namespace mla {

namespace ptx = device::ptx;

__device__ __forceinline__ void barrier_wait(std::uint64_t* barrier, std::uint32_t parity) {
    while (!ptx::mbarrier_try_wait(barrier, parity)) {
    }
}

__device__ __forceinline__ void barrier_arrive(std::uint64_t* barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(ptx::shared_address(barrier))
                 : "memory");
}

// The box's first element is in column x of row y; what is outside of the matrix arrives as zeros.
// The bytes count towards `barrier`'s phase, and are visible to who has waited for it.
__device__ __forceinline__ void tensor_load(void* shared, const CUtensorMap& map, int x, int y,
                                            std::uint64_t* barrier) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%3, %4}], [%2];" ::"r"(ptx::shared_address(shared)),
        "l"(&map), "r"(ptx::shared_address(barrier)), "r"(x), "r"(y)
        : "memory");
}

// Fetches contiguous bytes into L2; address and size are multiples of 16 bytes.
__device__ __forceinline__ void prefetch_to_l2(const void* global, std::uint32_t bytes) {
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(global), "r"(bytes) : "memory");
}

}  // namespace mla
