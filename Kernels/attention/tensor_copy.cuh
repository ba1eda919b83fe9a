// Copies of boxes of a tensor that report to barriers in shared memory, and who waits for whom.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "Kernels/device/ptx/mbarrier.cuh"

namespace attention {

__device__ __forceinline__ void barrier_arrive(std::uint64_t* barrier) {
    asm volatile(
        "mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(device::ptx::shared_address(barrier))
        : "memory");
}

// Waits for the end of the phase with that parity.
__device__ __forceinline__ void barrier_wait(std::uint64_t* barrier, unsigned parity) {
    while (!device::ptx::mbarrier_try_wait(barrier, parity)) {
    }
}

// Copies a box of a tensor of four dimensions; parts outside of it arrive as zeros.
__device__ __forceinline__ void copy_box(void* to, const CUtensorMap& map, std::uint64_t* barrier,
                                         int x, int y, int z, int w) {
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%3, %4, %5, %6}], [%2];" ::"r"(device::ptx::shared_address(to)),
        "l"(&map), "r"(device::ptx::shared_address(barrier)), "r"(x), "r"(y), "r"(z), "r"(w)
        : "memory");
}

}  // namespace attention
