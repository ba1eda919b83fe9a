// Thread-block clusters: ranks, barrier, and stores to a peer's shared memory.
#pragma once

#include <cstdint>

namespace device::ptx {

__device__ __forceinline__ uint32_t cluster_rank() {
    uint32_t rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

// Orders this thread's earlier stores, to peers too, before the matching wait of every thread.
__device__ __forceinline__ void cluster_arrive() {
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}

__device__ __forceinline__ void cluster_wait() {
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// Stores to the variable at the same place in the shared memory of block `rank` of the cluster.
__device__ __forceinline__ void store_to_peer(const float* own, uint32_t rank, float value) {
    uint32_t address;
    asm("mapa.shared::cluster.u32 %0, %1, %2;"
        : "=r"(address)
        : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(own))), "r"(rank));
    asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(address), "f"(value) : "memory");
}

}  // namespace device::ptx
