// A block as the team of one row: a RowTeam without its other cases. The fixed cost of a row
// (addresses, the reduction) is most of the time when rows are few, and still counts beside the
// arithmetic of its elements when they are many.
#pragma once

#include "Kernels/device/row_team.cuh"

namespace norms {

// Aligned, so that partial results are read four at a time.
struct alignas(16) TeamStorage : device::TeamStorage {};

// A cluster whose blocks each have a contiguous share of the row: places are those of the block.
class ShareTeam : public device::RowTeam {
  public:
    __device__ ShareTeam(TeamStorage& storage, int cluster_blocks, bool repeats)
        : device::RowTeam(storage, cluster_blocks, repeats) {}
    __device__ int place() const { return static_cast<int>(threadIdx.x); }
    __device__ int threads() const { return static_cast<int>(blockDim.x); }
};

class BlockTeam : public device::RowTeam {
  public:
    __device__ BlockTeam(TeamStorage& storage, int /*cluster_blocks*/, bool /*repeats*/ = false)
        : device::RowTeam(storage, 1), storage_(storage) {}

    // As RowTeam's. For a LogSum, the lanes of a warp must agree on `largest`.
    template <class Value>
    __device__ Value reduce(Value value) {
        return combine_warps(combine_lanes(value), true);
    }
    template <class Value>
    __device__ Value reduce_for_leader(Value value) {
        return combine_warps(combine_lanes(value), threadIdx.x < 32);
    }

  private:
    // Partials read unconditionally, whatever the number of warps.
    static constexpr int kAtOnce = 8;
    template <class Value>
    static constexpr int kFloats = static_cast<int>(sizeof(Value) / sizeof(float));

    static __device__ float exchange(float value, int distance) {
        return value + __shfl_xor_sync(0xffffffffu, value, distance);
    }

    template <class Value>
    static __device__ Value combine_lanes(Value value) {
#pragma unroll
        for (int distance = 16; distance > 0; distance /= 2) {
            if constexpr (std::is_same_v<Value, device::TwoSums>) {
                value = {exchange(value.first, distance), exchange(value.second, distance)};
            } else if constexpr (std::is_same_v<Value, device::LogSum>) {
                value.sum = exchange(value.sum, distance);
            } else {
                value.value = exchange(value.value, distance);
            }
        }
        return value;
    }

    template <class Value>
    __device__ Value combine_warps(Value value, bool wanted) {
        const int lane = threadIdx.x % 32;
        const int warps = blockDim.x / 32;
        Value* partials = reinterpret_cast<Value*>(storage_.partials[turn_]);
        turn_ ^= 1;
        if (lane == 0) partials[threadIdx.x / 32] = value;
        // Slots without a warp.
        if (threadIdx.x < 32 && threadIdx.x >= warps) partials[threadIdx.x] = Value::neutral();
        // All warps' partials are written before anyone reads them.
        __syncthreads();
        if (!wanted) return value;
        if constexpr (std::is_same_v<Value, device::LogSum>) {
            // One exponential per lane: one per warp in every lane would take longer.
            const bool all = warps > kAtOnce;
            const device::LogSum mine = partials[all ? lane : lane % kAtOnce];
            const float top = device::warp_max(mine.largest);
            float sum = mine.relative_to(top);
            if (all) sum = exchange(exchange(sum, 16), 8);
#pragma unroll
            for (int distance = kAtOnce / 2; distance > 0; distance /= 2) {
                sum = exchange(sum, distance);
            }
            return {top, sum};
        } else {
            Value total = sum_of(partials);
#pragma unroll 1
            for (int first = kAtOnce; first < warps; first += kAtOnce) {
                total = total + sum_of(partials + first);
            }
            return total;
        }
    }

    template <class Value>
    static __device__ Value sum_of(const Value* partials) {
        Value parts[kAtOnce];
        const float4* quads = reinterpret_cast<const float4*>(partials);
#pragma unroll
        for (int quad = 0; quad < kAtOnce * kFloats<Value> / 4; ++quad) {
            const float4 four = quads[quad];
            memcpy(reinterpret_cast<float*>(parts) + 4 * quad, &four, sizeof(four));
        }
        return ((parts[0] + parts[1]) + (parts[2] + parts[3])) +
               ((parts[4] + parts[5]) + (parts[6] + parts[7]));
    }

    TeamStorage& storage_;
    int turn_ = 0;
};

}  // namespace norms
