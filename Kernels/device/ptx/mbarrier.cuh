// Barriers in shared memory that count arrivals and bytes: one instruction per function.
#pragma once

#include <cstdint>

#include "Kernels/device/ptx/memory.cuh"

namespace device::ptx {

// A phase completes after this many arrivals.
__device__ __forceinline__ void mbarrier_init(std::uint64_t* barrier, std::uint32_t arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)),
                 "r"(arrivals)
                 : "memory");
}

// Makes initialised barriers visible to the async proxy.
__device__ __forceinline__ void fence_mbarrier_init() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// Arrives; this thread's earlier reads and writes come before the end of the phase.
__device__ __forceinline__ void mbarrier_arrive(std::uint64_t* barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier))
                 : "memory");
}

// Arrives, and makes the phase wait for this many bytes as well.
__device__ __forceinline__ void mbarrier_expect_bytes(std::uint64_t* barrier, std::uint32_t bytes) {
    asm volatile(
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)),
        "r"(bytes)
        : "memory");
}

// True once the phase of that parity is complete; may time out early, so it belongs in a loop.
__device__ __forceinline__ bool mbarrier_try_wait(std::uint64_t* barrier, std::uint32_t parity) {
    std::uint32_t complete;
    asm volatile(
        "{\n"
        ".reg .pred done;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 done, [%1], %2;\n"
        "selp.u32 %0, 1, 0, done;\n"
        "}"
        : "=r"(complete)
        : "r"(shared_address(barrier)), "r"(parity)
        : "memory");
    return complete != 0;
}

// Returns when the phase of that parity is complete.
__device__ __forceinline__ void mbarrier_wait(std::uint64_t* barrier, std::uint32_t parity) {
    while (!mbarrier_try_wait(barrier, parity)) {
    }
}

// The same with the loop inside the assembly, hidden from the compiler: the code around the wait is
// scheduled differently.
__device__ __forceinline__ void mbarrier_wait_opaque(std::uint64_t* barrier, std::uint32_t parity) {
    asm volatile(
        "{ .reg .pred done; again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1; "
        "@done bra.uni finished; bra.uni again; finished: }" ::"r"(shared_address(barrier)),
        "r"(parity)
        : "memory");
}

}  // namespace device::ptx
