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

#include "Kernels/device/ptx/cluster.cuh"
#include "Kernels/device/ptx/math.cuh"
#include "Kernels/device/ptx/mbarrier.cuh"

namespace device {

constexpr int kMaxWarps = 32;
constexpr int kMaxClusterBlocks = 8;

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

struct TeamStorage {
    // Two alternating copies: one barrier per reduction is then enough.
    float2 warps[2][kMaxWarps];
    float2 blocks[2][kMaxClusterBlocks];
    // The blocks' partials have arrived.
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
            ptx::mbarrier_init(&storage.read, blocks_);
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
        if (warps_ > 1) value = reduce_warps(value, wanted);
        if (blocks_ > 1) value = reduce_blocks(value);
        ++reductions_;
        return value;
    }

  private:
    template <class Value>
    static constexpr int kFloats = static_cast<int>(sizeof(Value) / sizeof(float));

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
            over_lanes(width, [&](int distance) {
                largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, distance));
            });
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
        if (lane == 0) memcpy(&storage_.warps[turn()][threadIdx.x / 32], &value, sizeof(value));
        // All warps' partials are written before anyone reads them.
        __syncthreads();
        if (!wanted) return value;
        constexpr int kAtOnce = kReadAtOnce<Value>;
        const float2* partials = storage_.warps[turn()];
        Value total = Value::neutral();
#pragma unroll 1
        for (int left = warps_; left > 0; left -= kAtOnce, partials += kAtOnce) {
            Value parts[kAtOnce];
#pragma unroll
            for (int i = 0; i < kAtOnce; ++i) {
                parts[i] = Value::neutral();
                if (i < left) {
                    const float2 partial = partials[i];
                    memcpy(&parts[i], &partial, sizeof(value));
                }
            }
            total = total + sum_of(parts);
        }
        return total;
    }

    // Warp partials that every thread reads and adds up by itself, which is faster than exchanging
    // them; fewer if each takes an exponential.
    template <class Value>
    static constexpr int kReadAtOnce = std::is_same_v<Value, LogSum> ? 4 : 8;

    template <class Value, int kParts>
    static __device__ Value sum_of(const Value (&parts)[kParts]) {
        if constexpr (std::is_same_v<Value, LogSum>) {
            LogSum total = parts[0];
#pragma unroll
            for (const LogSum& part : parts) total.largest = fmaxf(total.largest, part.largest);
            total.sum = 0.0f;
#pragma unroll
            for (const LogSum& part : parts) total.sum += part.relative_to(total.largest);
            return total;
        } else {
            Value total = parts[0];
#pragma unroll
            for (int i = 1; i < kParts; ++i) total = total + parts[i];
            return total;
        }
    }

    // Everyone sends its partial to everyone. A peer sends the one after next only once it has
    // heard with the next that all of our threads have read this one. (It also has our next one by
    // then, but a copy's arrival orders nothing that its sender did before.)
    template <class Value>
    __device__ Value reduce_blocks(Value value) {
        if (!peers_started_) ptx::cluster_wait();
        peers_started_ = true;
        float2* partials = storage_.blocks[turn()];
        std::uint64_t* collected = &storage_.collected[turn()];
        if (threadIdx.x == 0) ptx::mbarrier_expect_bytes(collected, blocks_ * sizeof(float2));
        const bool tells = repeats_ && reductions_ > 0 && threadIdx.x < blocks_;
        if (tells) ptx::mbarrier_arrive_at(ptx::peer_address(&storage_.read, threadIdx.x));
        if (threadIdx.x < blocks_) {
            float2 partial = {};
            memcpy(&partial, &value, sizeof(value));
            ptx::send_to_peer(ptx::peer_address(partials + rank_, threadIdx.x), partial,
                              ptx::peer_address(collected, threadIdx.x));
        }
        ptx::mbarrier_wait(collected, reductions_ / 2 % 2);
        if (tells) ptx::mbarrier_wait(&storage_.read, (reductions_ - 1) % 2);
        const auto part_of = [&](int block) {
            Value part = Value::neutral();
            if (block < blocks_) {
                const float2 partial = partials[block];
                memcpy(&part, &partial, sizeof(part));
            }
            return part;
        };
        // With many rows, the parts of blocks that are not there take time.
        if (blocks_ == 2) return part_of(0) + part_of(1);
        // All read at once: one after the other, each exponential would wait for the one before.
        Value parts[kMaxClusterBlocks];
#pragma unroll
        for (int block = 0; block < kMaxClusterBlocks; ++block) parts[block] = part_of(block);
        return sum_of(parts);
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
