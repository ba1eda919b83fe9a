// Barriers in shared memory that count arrivals and bytes, and the copies that report to them.
#pragma once

#include <cuda.h>

#include <cstdint>

namespace gemm {

__device__ __forceinline__ unsigned shared_address(const void* pointer) {
    return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

__device__ __forceinline__ void barrier_init(std::uint64_t& barrier, int arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(&barrier)),
                 "r"(arrivals)
                 : "memory");
}

// Makes initialised barriers visible to the copy engine.
__device__ __forceinline__ void barrier_init_fence() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ __forceinline__ void barrier_arrive(std::uint64_t& barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(&barrier))
                 : "memory");
}

// Arrives, and makes the phase wait for so many bytes besides.
__device__ __forceinline__ void barrier_expect(std::uint64_t& barrier, int bytes) {
    asm volatile(
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(&barrier)),
        "r"(bytes)
        : "memory");
}

// Waits for the end of the phase with that parity.
__device__ __forceinline__ void barrier_wait(std::uint64_t& barrier, unsigned parity) {
    asm volatile(
        "{ .reg .pred done; again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1; "
        "@done bra.uni finished; bra.uni again; finished: }" ::"r"(shared_address(&barrier)),
        "r"(parity)
        : "memory");
}

// Brings a map to the copy engine before its first use.
__device__ __forceinline__ void prefetch_map(const CUtensorMap& map) {
    asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

// Copies bytes that follow each other: whole pieces of 16, both sides aligned to as much.
__device__ __forceinline__ void copy_line(void* to, const void* from, int bytes,
                                          std::uint64_t& barrier) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
            "r"(shared_address(to)),
        "l"(from), "r"(bytes), "r"(shared_address(&barrier))
        : "memory");
}

// Copies a box of a tensor of three dimensions; parts outside of it arrive as zeros.
__device__ __forceinline__ void copy_box(void* to, const CUtensorMap& map, std::uint64_t& barrier,
                                         int x, int y, int z) {
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%3, %4, %5}], [%2];" ::"r"(shared_address(to)),
        "l"(&map), "r"(shared_address(&barrier)), "r"(x), "r"(y), "r"(z)
        : "memory");
}

// Writes a box of a tensor of two dimensions; parts outside of it are dropped.
__device__ __forceinline__ void store_box(const CUtensorMap& map, const void* from, int x, int y) {
    asm volatile(
        "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];" ::"l"(&map),
        "r"(shared_address(from)), "r"(x), "r"(y)
        : "memory");
}

__device__ __forceinline__ void boxes_commit() {
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

// Waits until the shared memory of all boxes that this thread has committed has been read.
__device__ __forceinline__ void boxes_wait() {
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}

// Orders this thread's writes to shared memory before copies that are started later.
__device__ __forceinline__ void copies_fence() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

}  // namespace gemm
