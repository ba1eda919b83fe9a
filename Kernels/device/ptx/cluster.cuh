// Thread-block clusters: ranks, barrier, and stores to a peer's shared memory, one instruction per
// function.
#pragma once

#include <cstdint>

#include "Kernels/device/ptx/memory.cuh"

namespace device::ptx {

// The block's rank in its cluster.
__device__ __forceinline__ std::uint32_t cluster_rank() {
    std::uint32_t rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

// Orders this thread's earlier stores, also to peers, before the matching wait of every thread.
__device__ __forceinline__ void cluster_arrive() {
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}

// Waits for the arrival of every thread of the cluster.
__device__ __forceinline__ void cluster_wait() {
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// Arrives without ordering memory; lanes of a warp need not call it together.
__device__ __forceinline__ void cluster_arrive_relaxed() {
    asm volatile("barrier.cluster.arrive.relaxed;" ::: "memory");
}

// Waits for the arrival of every thread that has not returned; lanes need not call it together.
__device__ __forceinline__ void cluster_wait_diverged() {
    asm volatile("barrier.cluster.wait;" ::: "memory");
}

// The same offset in the shared memory of block `rank` of the cluster.
__device__ __forceinline__ std::uint32_t peer_address(const void* own, std::uint32_t rank) {
    std::uint32_t address;
    asm("mapa.shared::cluster.u32 %0, %1, %2;"
        : "=r"(address)
        : "r"(shared_address(own)), "r"(rank));
    return address;
}

// Arrives at an mbarrier of any block of the cluster: an address from peer_address. Orders what
// this thread knows before the waits for it.
__device__ __forceinline__ void mbarrier_arrive_at(std::uint32_t barrier) {
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(barrier)
                 : "memory");
}

// The same after reads alone: orders no memory of other blocks, which would cost a fence.
__device__ __forceinline__ void mbarrier_arrive_read_at(std::uint32_t barrier) {
    asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(barrier) : "memory");
}

// Writes 8 bytes to a peer's shared memory and signals them to an mbarrier there.
__device__ __forceinline__ void send_to_peer(std::uint32_t address, float2 pair,
                                             std::uint32_t barrier) {
    asm volatile(
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [%0], {%1, %2}, [%3];" ::"r"(
            address),
        "f"(pair.x), "f"(pair.y), "r"(barrier)
        : "memory");
}

// The same with 16 bytes.
__device__ __forceinline__ void send_to_peer(std::uint32_t address, const float* four,
                                             std::uint32_t barrier) {
    asm volatile(
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1, %2, %3, %4}, "
        "[%5];" ::"r"(address),
        "f"(four[0]), "f"(four[1]), "f"(four[2]), "f"(four[3]), "r"(barrier)
        : "memory");
}

}  // namespace device::ptx
