// The threads that share a row, and reductions over them.
//
// A team is one of: part of a warp (several rows per block), a block, or a cluster of blocks.
//   lanes   threads of the team within a warp: a power of two up to 32
//   warps   warps of the team within a block; above 1 the block holds one row
//   blocks  blocks of the team: the size of the cluster
// Reductions go lanes -> warps -> blocks in a fixed order, so results are the same in every run,
// and every thread of the team gets the result.
#pragma once

#include <cstdint>
#include <type_traits>

#include "Kernels/device/machine.h"
#include "Kernels/device/ptx/cluster.cuh"
#include "Kernels/device/ptx/math.cuh"
#include "Kernels/device/ptx/mbarrier.cuh"

namespace device {

constexpr int kMaxWarps = 32;
// Partial results of a cluster that every block collects: two per lane. As many of each warp arrive
// sooner than one per block that its warps have met for; of more, the messages take longer.
constexpr int kMostPartials = 64;
static_assert(kMaxWarps + kMaxClusterBlocks <= kMostPartials, "either kind needs room");

// Values that reductions combine. Each has a neutral element and an (associative) operation.
struct Sum {
    float value;
    static __device__ Sum neutral() { return {0.0f}; }
    __device__ Sum operator+(Sum other) const { return {value + other.value}; }
};

struct WideSum {
    double value;
    static __device__ WideSum neutral() { return {0.0}; }
    __device__ WideSum operator+(WideSum other) const { return {value + other.value}; }
};

struct TwoSums {
    float first, second;
    static __device__ TwoSums neutral() { return {0.0f, 0.0f}; }
    __device__ TwoSums operator+(TwoSums other) const {
        return {first + other.first, second + other.second};
    }
};

// Sum of powers of two, relative to the largest: for values v, largest is max(v) and sum is the sum
// of 2^(v - largest).
struct LogSum {
    float largest, sum;
    static __device__ LogSum neutral() { return {-INFINITY, 0.0f}; }
    // The same sum relative to `top`, which is not smaller than largest.
    __device__ float relative_to(float top) const {
        // No finite member: 2^(-inf - -inf) would be NaN.
        return top == -INFINITY ? 0.0f : sum * ptx::exp2_fast(largest - top);
    }
    __device__ LogSum operator+(LogSum other) const {
        const float top = fmaxf(largest, other.largest);
        return {top, relative_to(top) + other.relative_to(top)};
    }
};

// The maximum over a warp. One instruction reduces integers; floats order like them once the bits
// below the sign of negative ones are flipped.
__device__ inline float warp_max(float value) {
    const auto turned = [](int bits) { return bits ^ (bits >> 31 & 0x7fffffff); };
    return __int_as_float(turned(__reduce_max_sync(0xffffffffu, turned(__float_as_int(value)))));
}

struct TeamStorage {
    // Two alternating copies: one barrier per reduction is then enough.
    float2 partials[2][kMostPartials];
    // Those of a cluster have arrived.
    std::uint64_t collected[2];
    // They have read those of the reduction before.
    std::uint64_t read;
};

class RowTeam {
  public:
    // `repeats`: more than two reductions, so that partials overwrite earlier ones.
    __device__ RowTeam(TeamStorage& storage, int cluster_blocks, bool repeats = false)
        : storage_(storage),
          lanes_(blockDim.x < 32 ? blockDim.x : 32),
          warps_((blockDim.x + 31) / 32),
          blocks_(cluster_blocks),
          rank_(cluster_blocks > 1 ? ptx::cluster_rank() : 0),
          repeats_(repeats) {
        if (blocks_ == 1) return;
        if (threadIdx.x == 0) {
            for (std::uint64_t& each : storage.collected) ptx::mbarrier_init(&each, 1);
            ptx::mbarrier_init(&storage.read, blocks_ * senders());
            ptx::fence_mbarrier_init();
        }
        // Peers must have started before anyone sends to their shared memory; the wait for them is
        // in the first reduction, so that loads do not wait.
        ptx::cluster_arrive_relaxed();
    }

    // This thread's index among the team's threads, and how many there are.
    __device__ int place() const { return rank_ * blockDim.x + threadIdx.x; }
    __device__ int threads() const { return blocks_ * blockDim.x; }
    __device__ bool leads() const { return place() == 0; }

    // All threads of the block (of the cluster) must call it.
    template <class Value>
    __device__ Value reduce(Value value) {
        return reduce_beyond_warp(reduce_within_warp(value));
    }

    // Like `reduce`, but only the leader's warp gets the result: others need not add up.
    template <class Value>
    __device__ Value reduce_for_leader(Value value) {
        return reduce_beyond_warp(reduce_within_warp(value), threadIdx.x < 32);
    }

    // Over the team's threads in this warp only; no barrier.
    template <class Value>
    __device__ Value reduce_within_warp(Value value) const {
        return combine(value, lanes_);
    }

    // The rest of a reduction, for values that all lanes of a warp share.
    template <class Value>
    __device__ Value reduce_beyond_warp(Value value, bool wanted = true) {
        const int senders = blocks_ == 1 ? 1 : this->senders();
        if (warps_ > 1 && senders == 1) {
            value = reduce_warps(value, blocks_ == 1 ? wanted : threadIdx.x < 32);
        }
        if (blocks_ > 1) value = reduce_blocks(value, senders);
        ++reductions_;
        return value;
    }

  private:
    template <class Value>
    static constexpr int kFloats = static_cast<int>(sizeof(Value) / sizeof(float));

    // Warps of a block that send to its peers: all, or the first one what all of them have. Rows
    // that come through a ring need the barrier before it.
    __device__ int senders() const {
        return !repeats_ && warps_ * blocks_ <= kMostPartials ? warps_ : 1;
    }

    // The copy of the storage that this reduction uses.
    __device__ int turn() const { return reductions_ % 2; }

    // A butterfly: halves the distance between exchanging lanes until they are neighbours.
    template <class Exchange>
    static __device__ void over_lanes(int width, Exchange&& exchange) {
        if (width == 32) {
#pragma unroll
            for (int distance = 16; distance > 0; distance /= 2) exchange(distance);
        } else {
#pragma unroll 1
            for (int distance = width / 2; distance > 0; distance /= 2) exchange(distance);
        }
    }

    // Over lanes whose indices differ only below `width`, a power of two.
    template <class Value>
    static __device__ Value combine(Value value, int width) {
        if constexpr (std::is_same_v<Value, LogSum>) {
            // The maximum first, so that each lane rescales its sum only once.
            float largest = value.largest;
            if (width == 32) {
                largest = warp_max(largest);
            } else {
                over_lanes(width, [&](int distance) {
                    largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, distance));
                });
            }
            return {largest, combine(Sum{value.relative_to(largest)}, width).value};
        } else {
            over_lanes(width, [&](int distance) { value = value + exchange(value, distance); });
            return value;
        }
    }

    template <class Value>
    static __device__ Value exchange(Value value, int distance) {
        float parts[kFloats<Value>];
        memcpy(parts, &value, sizeof(value));
#pragma unroll
        for (float& part : parts) part = __shfl_xor_sync(0xffffffffu, part, distance);
        memcpy(&value, parts, sizeof(value));
        return value;
    }

    template <class Value>
    __device__ Value reduce_warps(Value value, bool wanted) {
        static_assert(sizeof(Value) <= sizeof(float2), "TeamStorage is too small");
        const int lane = threadIdx.x % 32;
        if (lane == 0) memcpy(&storage_.partials[turn()][threadIdx.x / 32], &value, sizeof(value));
        // All warps' partials are written before anyone reads them.
        __syncthreads();
        const float2* partials = storage_.partials[turn()];
        // Even where it is not wanted: after a branch, lanes would meet for each exchange.
        if constexpr (std::is_same_v<Value, LogSum>) {
            return combine(part_of<Value>(partials, lane, warps_), 32);
        }
        return wanted ? total_of<Value>(partials, warps_) : value;
    }

    // Partials that every thread reads and adds up by itself, which is faster than exchanging them.
    // Not those with exponentials: one per lane takes less time than one per warp in every lane.
    static constexpr int kAtOnce = 8;

    template <class Value>
    static __device__ Value total_of(const float2* partials, int count) {
        Value total = Value::neutral();
#pragma unroll 1
        for (int left = count; left > 0; left -= kAtOnce, partials += kAtOnce) {
            Value parts[kAtOnce];
#pragma unroll
            for (int i = 0; i < kAtOnce; ++i) parts[i] = part_of<Value>(partials, i, left);
            total = total + sum_of(parts);
        }
        return total;
    }

    template <class Value>
    static __device__ Value part_of(const float2* partials, int index, int count) {
        Value part = Value::neutral();
        if (index < count) {
            const float2 partial = partials[index];
            memcpy(&part, &partial, sizeof(part));
        }
        return part;
    }

    template <class Value, int kParts>
    static __device__ Value sum_of(const Value (&parts)[kParts]) {
        Value total = parts[0];
#pragma unroll
        for (int i = 1; i < kParts; ++i) total = total + parts[i];
        return total;
    }

    // Every sender sends its partial to every block. A peer sends the one after next only once it
    // has heard with the next that all of our threads have read this one. (It also has our next one
    // by then, but a copy's arrival orders nothing that its sender did before.)
    template <class Value>
    __device__ Value reduce_blocks(Value value, int senders) {
        if (!peers_started_) ptx::cluster_wait();
        peers_started_ = true;
        const int warp = threadIdx.x / 32;
        const int lane = threadIdx.x % 32;
        const int count = blocks_ * senders;
        // Behind what the block's own warps have.
        float2* partials = storage_.partials[turn()] + (senders == 1 ? kMaxWarps : 0);
        std::uint64_t* collected = &storage_.collected[turn()];
        if (threadIdx.x == 0) ptx::mbarrier_expect_bytes(collected, count * sizeof(float2));
        const bool sends = warp < senders && lane < blocks_;
        const bool tells = repeats_ && reductions_ > 0 && sends;
        if (tells) ptx::mbarrier_arrive_read_at(ptx::peer_address(&storage_.read, lane));
        if (sends) {
            float2 partial = {};
            memcpy(&partial, &value, sizeof(value));
            const float2* place = partials + rank_ * senders + warp;
            ptx::send_to_peer(ptx::peer_address(place, lane), partial,
                              ptx::peer_address(collected, lane));
        }
        ptx::mbarrier_wait(collected, reductions_ / 2 % 2);
        if (tells) ptx::mbarrier_wait(&storage_.read, (reductions_ - 1) % 2);
        if constexpr (!std::is_same_v<Value, LogSum>) {
            if (senders == 1) return total_of<Value>(partials, count);
        }
        value = part_of<Value>(partials, lane, count);
        if (count > 32) value = value + part_of<Value>(partials, lane + 32, count);
        return combine(value, 32);
    }

    TeamStorage& storage_;
    const int lanes_;
    const int warps_;
    const int blocks_;
    const int rank_;
    const bool repeats_;
    bool peers_started_ = false;
    unsigned reductions_ = 0;
};

}  // namespace device
