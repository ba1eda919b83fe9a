// What the last of an item's teams does: it merges the parts that all of them have left. One warp
// merges one row, and issues all its loads at once.
//
// Tr is a kernel's traits: T, kDim, kRows in kRowTiles tiles, kFp8.
#pragma once

#include <cstdint>
#include <type_traits>

#include "Kernels/decode/arguments.h"
#include "Kernels/decode/either_type.cuh"
#include "Kernels/device/ptx/memory.cuh"
#include "Kernels/device/ptx/named_barrier.cuh"
#include "Kernels/device/softmax_rows.cuh"

namespace decode {

namespace ptx = device::ptx;

// The warps of a block that work on one share.
struct Team {
    int warps;

    // This warp's index in the team, and the index in the block of the team's first warp.
    __device__ int warp() const { return threadIdx.x / 32 & (warps - 1); }
    __device__ int first_warp() const { return threadIdx.x / 32 & -warps; }

    // A barrier across the team's threads. Each team has its own.
    __device__ void sync() const { ptx::named_barrier_sync(first_warp(), 32 * warps); }

    // The same; true in all threads if `value` is true in any.
    __device__ bool sync_or(bool value) const {
        return ptx::named_barrier_or(first_warp(), 32 * warps, value);
    }
};

// Elements of a row that a lane merges: one packet, or two.
template <class Tr>
constexpr int kPerLane = Tr::kDim / 32;
struct TwoPackets {
    float4 low, high;
};
template <class Tr>
using Packet = std::conditional_t<kPerLane<Tr> == 8, TwoPackets,
                                  std::conditional_t<kPerLane<Tr> == 4, float4, float2>>;

// The first row of a part in the workspace.
template <class Tr>
__device__ __forceinline__ std::int64_t part_row(const Arguments& a, int slot, int first_row) {
    return static_cast<std::int64_t>(slot) * a.row_blocks.value * Tr::kRows + first_row;
}

// The parts of an item for one row, in the workspace.
template <class Tr>
struct Parts {
    // Loaded together: as many as registers allow.
    static constexpr int kAtOnce = Tr::kRowTiles > 1 ? 4 : kPerLane<Tr> == 8 ? 8 : 16;

    const float2* maxima;
    const float* sums;
    // Stride between parts, in rows.
    std::int64_t stride;

    __device__ Parts(const Arguments& a, const Segment& segment, int first_row, int row)
        : stride(static_cast<std::int64_t>(a.row_blocks.value) * Tr::kRows) {
        const std::int64_t first = part_row<Tr>(a, segment.first_slot, first_row) + row;
        maxima = a.workspace.maxima + first;
        sums = a.workspace.partials + first * Tr::kDim + threadIdx.x % 32 * kPerLane<Tr>;
    }

    // Of part first + lane; nothing past the last.
    __device__ float2 maximum_of_lane(int first, int count) const {
        const int lane = threadIdx.x % 32;
        float2 maximum = {-INFINITY, 0.0f};
        if (lane < kAtOnce && first + lane < count) {
            maximum = __ldcg(maxima + (first + lane) * stride);
        }
        return maximum;
    }
    __device__ Packet<Tr> packet(int part) const {
        const auto* packet = reinterpret_cast<const Packet<Tr>*>(sums + part * stride * Tr::kDim);
        if constexpr (kPerLane<Tr> == 8) {
            return {__ldcg(&packet->low), __ldcg(&packet->high)};
        } else {
            return __ldcg(packet);
        }
    }
};

__device__ __forceinline__ float largest_of_warp(float value) {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) {
        value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, distance));
    }
    return value;
}

// A row merged by one warp.
template <class Tr>
struct Merged {
    float sums[kPerLane<Tr>] = {};
    float largest = -INFINITY;
    float total = 0.0f;

    // The parts of an item, one group at a time; a new maximum rescales what was added before. Each
    // part added makes room for one of the next group.
    __device__ __forceinline__ void add_parts(const Parts<Tr>& parts, int count) {
        constexpr int kAtOnce = Parts<Tr>::kAtOnce;
        float2 mine = parts.maximum_of_lane(0, count);
        Packet<Tr> packets[kAtOnce];
#pragma unroll
        for (int part = 0; part < kAtOnce; ++part) {
            if (part < count) packets[part] = parts.packet(part);
        }
        for (int group = 0; group < count; group += kAtOnce) {
            const float2 next = parts.maximum_of_lane(group + kAtOnce, count);
            const float top = largest_of_warp(fmaxf(largest, mine.x));
            const float shrunk = device::shrink(largest, top);
            largest = top;
            total *= shrunk;
#pragma unroll
            for (float& sum : sums) sum *= shrunk;
            const float factor = device::shrink(mine.x, top);
            const float weighted = mine.y * factor;
#pragma unroll
            for (int part = 0; part < kAtOnce; ++part) {
                if (group + part >= count) break;
                float values[kPerLane<Tr>];
                memcpy(values, &packets[part], sizeof(values));
                const float scale = __shfl_sync(0xffffffffu, factor, part);
                total += __shfl_sync(0xffffffffu, weighted, part);
#pragma unroll
                for (int index = 0; index < kPerLane<Tr>; ++index) {
                    sums[index] += scale * values[index];
                }
                const int later = group + kAtOnce + part;
                if (later < count) packets[part] = parts.packet(later);
            }
            mine = next;
        }
    }

    // To the output; `row` counts from the first of the sequence and head.
    __device__ __forceinline__ void store_result(const Arguments& a, const Segment& segment,
                                                 int row) const {
        constexpr int kPairs = kPerLane<Tr> / 2;
        const int query = a.group.quotient(row);
        const int head = (segment.kv_head - query) * a.group.value + row;
        const std::int64_t token = static_cast<std::int64_t>(segment.sequence) * a.q_len + query;
        auto* out = static_cast<std::uint32_t*>(a.out) + (token * a.heads + head) * (Tr::kDim / 2);
        const float scale = a.value_scale / total;
#pragma unroll
        for (int pair = 0; pair < kPairs; ++pair) {
            // A row that sees nothing yields 0, whatever was in the ring.
            const float low = total > 0.0f ? sums[2 * pair] * scale : 0.0f;
            const float high = total > 0.0f ? sums[2 * pair + 1] * scale : 0.0f;
            std::uint32_t word;
            if constexpr (Tr::kFp8) {
                word = pack_pair(low, high, a.is_bf16);
            } else {
                word = device::pack_pair(low, high, typename Tr::T{});
            }
            out[threadIdx.x % 32 * kPairs + pair] = word;
        }
    }

    // As a part of an item, to row `at` of the workspace.
    __device__ __forceinline__ void store_part(const Arguments& a, std::int64_t at) const {
        const int lane = threadIdx.x % 32;
        Packet<Tr> packet;
        memcpy(&packet, sums, sizeof(packet));
        reinterpret_cast<Packet<Tr>*>(a.workspace.partials + at * Tr::kDim)[lane] = packet;
        if (lane == 0) a.workspace.maxima[at] = {largest, total};
    }
};

// Announces this team's part, stored before a barrier; true in all its threads if it was last.
__device__ inline bool arrive(const Arguments& a, const Segment& segment, int row_block,
                              Team team) {
    bool is_last = false;
    if (threadIdx.x == 32 * team.first_warp()) {
        std::int32_t* counter =
            a.workspace.counters + segment.item * a.row_blocks.value + row_block;
        is_last = ptx::count_arrival(counter) == segment.parts - 1;
        // Ready for the next launch.
        if (is_last) *counter = 0;
    }
    // The other teams' parts are visible before anyone here reads them.
    return team.sync_or(is_last);
}

// The result of an item from its parts.
template <class Tr>
__device__ void merge_parts(const Arguments& a, const Segment& segment, int first_row, Team team) {
    const int rows = min(Tr::kRows, a.rows - first_row);
    for (int row = team.warp(); row < rows; row += team.warps) {
        Merged<Tr> merged;
        merged.add_parts(Parts<Tr>(a, segment, first_row, row), segment.parts);
        merged.store_result(a, segment, first_row + row);
    }
}

}  // namespace decode
