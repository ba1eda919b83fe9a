// A tile whose k is shared out over the blocks of a cluster: few tiles keep all multiprocessors
// busy. Each block sums its part of k; then each collects one part of the columns from all, in an
// order that depends on nothing but the shape, so results repeat to the bit.
#pragma once

#include "Kernels/gemm/barrier.cuh"

namespace gemm {

struct Part {
    int begin;
    int end;
};

// The rank's share of `count`, with at most one of difference between ranks.
__device__ __forceinline__ Part part_of(int count, int rank, int split) {
    return {count * rank / split, count * (rank + 1) / split};
}

// Waits for all threads of the cluster that have not returned. Orders no memory.
__device__ __forceinline__ void cluster_meet() {
    asm volatile("barrier.cluster.arrive.relaxed; barrier.cluster.wait;" ::: "memory");
}

// The same place in the shared memory of another block of the cluster.
__device__ __forceinline__ unsigned address_of_rank(const void* here, int rank) {
    unsigned there;
    asm("mapa.shared::cluster.u32 %0, %1, %2;"
        : "=r"(there)
        : "r"(shared_address(here)), "r"(rank));
    return there;
}

// Writes 16 bytes to another block's shared memory and reports them to a barrier there.
__device__ __forceinline__ void send(unsigned address, const float* from, unsigned barrier) {
    asm volatile(
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1, %2, %3, %4}, "
        "[%5];" ::"r"(address),
        "f"(from[0]), "f"(from[1]), "f"(from[2]), "f"(from[3]), "r"(barrier)
        : "memory");
}

// Called by kThreads threads with the same place in every block of the cluster, when these need the
// shared memory behind `room` no more. Four sums belong to eight columns of 64 rows; those in
// `mine`, counted in eights over all halves, become totals. `collected` counts one arrival.
template <int kThreads, int kHalves, int kCount>
__device__ void collect(float4* room, std::uint64_t& collected, int thread, int rank, int split,
                        Part mine, float (&sums)[kHalves][kCount]) {
    constexpr int kHalfEights = kCount / 4;
    constexpr int kEights = kHalves * kHalfEights;
    const auto sums_of = [&](int i) { return &sums[i / kHalfEights][i % kHalfEights * 4]; };
    // A sender's place in the room depends on how far its rank is from the receiver's.
    const int place = (kEights + split - 1) / split * kThreads;
    cluster_meet();  // everybody's room is free
    if (thread == 0) {
        const int pieces = (split - 1) * (mine.end - mine.begin) * kThreads;
        barrier_expect(collected, pieces * int{sizeof(float4)});
    }
    for (int distance = 1; distance < split; ++distance) {
        const int to = rank + distance < split ? rank + distance : rank + distance - split;
        const Part theirs = part_of(kEights, to, split);
        const unsigned start = address_of_rank(room + (distance - 1) * place + thread, to);
        const unsigned barrier = address_of_rank(&collected, to);
#pragma unroll
        for (int i = 0; i < kEights; ++i) {
            if (i < theirs.begin || i >= theirs.end) continue;
            const int offset = (i - theirs.begin) * kThreads * int{sizeof(float4)};
            send(start + offset, sums_of(i), barrier);
        }
    }
    barrier_wait(collected, 0);
    for (int distance = 1; distance < split; ++distance) {
        const float4* start = room + (distance - 1) * place + thread;
#pragma unroll
        for (int i = 0; i < kEights; ++i) {
            if (i < mine.begin || i >= mine.end) continue;
            const float4 part = start[(i - mine.begin) * kThreads];
            float* const into = sums_of(i);
            into[0] += part.x;
            into[1] += part.y;
            into[2] += part.z;
            into[3] += part.w;
        }
    }
}

}  // namespace gemm
