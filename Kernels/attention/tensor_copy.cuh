// Barriers in shared memory that count arrivals and bytes, and copies of boxes that report to them.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "Kernels/device/ptx/cp_async.cuh"

namespace attention {

__device__ __forceinline__ void barrier_init(std::uint64_t& barrier, int arrivals) {
    asm volatile(
        "mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(device::ptx::shared_address(&barrier)),
        "r"(arrivals)
        : "memory");
}

// Makes initialised barriers visible to the copy engine.
__device__ __forceinline__ void barrier_init_fence() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ __forceinline__ void barrier_arrive(std::uint64_t& barrier) {
    asm volatile(
        "mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(device::ptx::shared_address(&barrier))
        : "memory");
}

// Arrives, and makes the phase wait for so many bytes besides.
__device__ __forceinline__ void barrier_expect(std::uint64_t& barrier, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(
                     device::ptx::shared_address(&barrier)),
                 "r"(bytes)
                 : "memory");
}

// Waits for the end of the phase with that parity.
__device__ __forceinline__ void barrier_wait(std::uint64_t& barrier, unsigned parity) {
    std::uint32_t done = 0;
    while (done == 0) {
        asm volatile(
            "{ .reg .pred done; mbarrier.try_wait.parity.shared::cta.b64 done, [%1], %2; "
            "selp.u32 %0, 1, 0, done; }"
            : "=r"(done)
            : "r"(device::ptx::shared_address(&barrier)), "r"(parity)
            : "memory");
    }
}

// Copies a box of a tensor of four dimensions; parts outside of it arrive as zeros.
__device__ __forceinline__ void copy_box(void* to, const CUtensorMap& map, std::uint64_t& barrier,
                                         int x, int y, int z, int w) {
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%3, %4, %5, %6}], [%2];" ::"r"(device::ptx::shared_address(to)),
        "l"(&map), "r"(device::ptx::shared_address(&barrier)), "r"(x), "r"(y), "r"(z), "r"(w)
        : "memory");
}

}  // namespace attention
