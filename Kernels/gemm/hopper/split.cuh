// Split-K over the blocks of a cluster: keeps all SMs busy when tiles are few. Each block sums its
// part of k; then each reduces one part of the columns from all, in an order that depends only on
// the shape, so results are bitwise reproducible.
#pragma once

#include "Kernels/device/divider.h"
#include "Kernels/device/ptx/cluster.cuh"
#include "Kernels/device/ptx/mbarrier.cuh"

namespace gemm::hopper {

namespace ptx = device::ptx;

struct Part {
    int begin;
    int end;
};

// Blocks per cluster.
class Split {
  public:
    explicit Split(int blocks) : blocks_(blocks), by_(blocks) {}

    __device__ __forceinline__ int blocks() const { return blocks_; }
    // Of this block, and of the grid.
    __device__ __forceinline__ int cluster() const { return over(blockIdx.x); }
    __device__ __forceinline__ int rank() const { return blockIdx.x - cluster() * blocks(); }
    __device__ __forceinline__ int clusters() const { return over(gridDim.x); }
    // The rank's share of `count`; shares differ by at most one.
    __device__ __forceinline__ Part part_of(int count, int rank) const {
        return {over(count * rank), over(count * (rank + 1))};
    }
    __device__ __forceinline__ int largest_part_of(int count) const {
        return over(count + blocks() - 1);
    }

  private:
    __device__ __forceinline__ int over(int value) const {
        return static_cast<int>(by_.quotient(value));
    }

    int blocks_;
    device::Divider by_;
};

// One block has all of k.
struct NoSplit {
    __device__ __forceinline__ int cluster() const { return blockIdx.x; }
    __device__ __forceinline__ int rank() const { return 0; }
    __device__ __forceinline__ int clusters() const { return gridDim.x; }
    __device__ __forceinline__ Part part_of(int count, int) const { return {0, count}; }
};

// Two blocks of a cluster take neighbouring tiles.
struct Pair {
    __device__ __forceinline__ int cluster() const { return blockIdx.x / 2; }
    __device__ __forceinline__ int rank() const { return blockIdx.x % 2; }
    __device__ __forceinline__ int clusters() const { return gridDim.x / 2; }
    __device__ __forceinline__ Part part_of(int count, int) const { return {0, count}; }
};

// Called by kThreads threads in the same position in every block of the cluster, once these no
// longer need the shared memory behind `room`. Four sums belong to eight columns of 64 rows; those
// in `mine`, counted in eights over all halves, become totals. `collected` counts one arrival.
template <int kThreads, int kHalves, int kCount>
__device__ void collect(float4* room, std::uint64_t& collected, int thread, int rank,
                        const Split& given, Part mine, float (&sums)[kHalves][kCount]) {
    constexpr int kHalfEights = kCount / 4;
    const int split = given.blocks();
    constexpr int kEights = kHalves * kHalfEights;
    const auto sums_of = [&](int i) { return &sums[i / kHalfEights][i % kHalfEights * 4]; };
    // A sender's slot in the room depends on its rank's distance from the receiver's.
    const int place = given.largest_part_of(kEights) * kThreads;
    // Everyone's room is free. Orders no memory.
    ptx::cluster_arrive_relaxed();
    ptx::cluster_wait_diverged();
    if (thread == 0) {
        const int pieces = (split - 1) * (mine.end - mine.begin) * kThreads;
        ptx::mbarrier_expect_bytes(&collected, pieces * int{sizeof(float4)});
    }
    for (int distance = 1; distance < split; ++distance) {
        const int to = rank + distance < split ? rank + distance : rank + distance - split;
        const Part theirs = given.part_of(kEights, to);
        const unsigned start = ptx::peer_address(room + (distance - 1) * place + thread, to);
        const unsigned barrier = ptx::peer_address(&collected, to);
#pragma unroll
        for (int i = 0; i < kEights; ++i) {
            if (i < theirs.begin || i >= theirs.end) continue;
            const int offset = (i - theirs.begin) * kThreads * int{sizeof(float4)};
            ptx::send_to_peer(start + offset, sums_of(i), barrier);
        }
    }
    ptx::mbarrier_wait_opaque(&collected, 0);
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

}  // namespace gemm::hopper
