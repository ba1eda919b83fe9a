// What happens at the end of a segment: warps merge, results are stored, parts are merged.
#pragma once

#include <cstdint>
#include <type_traits>

#include "Kernels/decode/products.cuh"

namespace decode {

// Where a lane's pair of sums lies in its row in shared memory: rows that are stored together begin
// in other banks.
__device__ __forceinline__ int sum_column(int eight) {
    const int lane = threadIdx.x % 32;
    return (eight ^ (lane / 4 & 3)) * 8 + lane % 4 * 2;
}

// Brings the warps' results of a segment together in warp 0. All threads of the block call it.
template <class Tr>
__device__ void merge_warps(SharedStorage<Tr>& shared, Softmax<Tr>& softmax) {
    const int warp = threadIdx.x / 32;
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int tile = 0; tile < Tr::kRowTiles; ++tile) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            softmax.total[tile][half] = device::sum_of_four_lanes(softmax.total[tile][half]);
            if (lane % 4 == 0) {
                shared.maxima[warp][tile * kTileRows + half * 8 + lane / 4] = {
                    softmax.largest[tile][half], softmax.total[tile][half]};
            }
        }
    }
    // Orders all warps' maxima before anyone reads them.
    __syncthreads();
#pragma unroll
    for (int tile = 0; tile < Tr::kRowTiles; ++tile) {
        float factors[2];
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int row = tile * kTileRows + half * 8 + lane / 4;
            float top = -INFINITY;
#pragma unroll
            for (int other = 0; other < kWarps; ++other) {
                top = fmaxf(top, shared.maxima[other][row].x);
            }
            float total = 0.0f;
#pragma unroll
            for (int other = 0; other < kWarps; ++other) {
                const float2 theirs = shared.maxima[other][row];
                total += theirs.y * device::shrink(theirs.x, top);
            }
            factors[half] = device::shrink(softmax.largest[tile][half], top);
            softmax.largest[tile][half] = top;
            softmax.total[tile][half] = total;
        }
#pragma unroll
        for (auto& four : softmax.sums[tile]) {
#pragma unroll
            for (int index = 0; index < 4; ++index) four[index] *= factors[index / 2];
        }
        // A tree: the upper half of the warps hands its sums to the lower half.
#pragma unroll
        for (int half_warps = kWarps / 2; half_warps > 0; half_warps /= 2) {
            if (warp >= half_warps && warp < 2 * half_warps) {
                float (&sums)[kTileRows][Tr::kDim] = shared.sums[warp - half_warps];
#pragma unroll
                for (int eight = 0; eight < Tr::kDim / 8; ++eight) {
                    const auto& four = softmax.sums[tile][eight];
                    const int column = sum_column(eight);
                    *reinterpret_cast<float2*>(&sums[lane / 4][column]) = {four[0], four[1]};
                    *reinterpret_cast<float2*>(&sums[lane / 4 + 8][column]) = {four[2], four[3]};
                }
            }
            // Orders the sums handed over before they are added.
            __syncthreads();
            if (warp < half_warps) {
                const float (&sums)[kTileRows][Tr::kDim] = shared.sums[warp];
#pragma unroll
                for (int eight = 0; eight < Tr::kDim / 8; ++eight) {
                    auto& four = softmax.sums[tile][eight];
                    const int column = sum_column(eight);
                    const float2 upper = *reinterpret_cast<const float2*>(&sums[lane / 4][column]);
                    const float2 lower =
                        *reinterpret_cast<const float2*>(&sums[lane / 4 + 8][column]);
                    four[0] += upper.x;
                    four[1] += upper.y;
                    four[2] += lower.x;
                    four[3] += lower.y;
                }
            }
            // Nobody overwrites sums before they have been added.
            __syncthreads();
        }
    }
}

// Two elements of the output.
template <class Tr>
__device__ __forceinline__ std::uint32_t pack_out(const Arguments& a, float low, float high) {
    if constexpr (Tr::kFp8) {
        return pack_pair(low, high, a.is_bf16);
    } else {
        return device::pack_pair(low, high, typename Tr::T{});
    }
}

// First element of a row of the output.
template <class Tr>
__device__ __forceinline__ typename Tr::T* out_row(const Arguments& a, const Segment& segment,
                                                   int row) {
    const int head = segment.kv_head * a.group + row % a.group;
    const std::int64_t token =
        static_cast<std::int64_t>(segment.sequence) * a.q_len + row / a.group;
    return static_cast<typename Tr::T*>(a.out) + (token * a.heads + head) * Tr::kDim;
}

// The first row of a part in the workspace.
template <class Tr>
__device__ __forceinline__ std::int64_t part_row(const Arguments& a, int slot, int row_block) {
    return (static_cast<std::int64_t>(slot) * a.row_blocks + row_block) * Tr::kRows;
}

// Two sums of a lane that are neighbours in a row, number `index` of its pairs, and the column of
// the first.
template <class Tr>
__device__ __forceinline__ float2 neighbours(const float (&sums)[Tr::kDim / 8][4], int index,
                                             int half) {
    if constexpr (Tr::kFp8) {
        // Even and odd columns are sums of two products.
        const int even = index / 2 * 2, place = 2 * half + index % 2;
        return {sums[even][place], sums[even + 1][place]};
    } else {
        return {sums[index][2 * half], sums[index][2 * half + 1]};
    }
}
template <class Tr>
__device__ __forceinline__ int first_column(int index) {
    const int pair = threadIdx.x % 4;
    return Tr::kFp8 ? index / 2 * 16 + pair * 4 + index % 2 * 2 : index * 8 + pair * 2;
}

// Warp 0 stores what the block found: the result, or a part in fp32.
template <class Tr>
__device__ void store(const Arguments& a, const Segment& segment, int row_block,
                      const Softmax<Tr>& softmax) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int tile = 0; tile < Tr::kRowTiles; ++tile) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int in_block = tile * kTileRows + half * 8 + lane / 4;
            const int row = row_block * Tr::kRows + in_block;
            if (row >= a.rows) continue;
            const float total = softmax.total[tile][half];
            if (segment.slot < 0) {
                auto* out = reinterpret_cast<std::uint32_t*>(out_row<Tr>(a, segment, row));
                const float scale = a.value_scale / total;
#pragma unroll
                for (int index = 0; index < Tr::kDim / 8; ++index) {
                    const float2 both = neighbours<Tr>(softmax.sums[tile], index, half);
                    // A row that sees nothing gives 0, whatever was in the ring.
                    const float first = total > 0.0f ? both.x * scale : 0.0f;
                    const float second = total > 0.0f ? both.y * scale : 0.0f;
                    out[first_column<Tr>(index) / 2] = pack_out<Tr>(a, first, second);
                }
            } else {
                const std::int64_t at = part_row<Tr>(a, segment.slot, row_block) + in_block;
                float* part = a.workspace.partials + at * Tr::kDim;
#pragma unroll
                for (int index = 0; index < Tr::kDim / 8; ++index) {
                    *reinterpret_cast<float2*>(part + first_column<Tr>(index)) =
                        neighbours<Tr>(softmax.sums[tile], index, half);
                }
                if (lane % 4 == 0) {
                    a.workspace.maxima[at] = {softmax.largest[tile][half], total};
                }
            }
        }
    }
}

// Where the parts of one row of an item are.
template <class Tr>
struct Parts {
    // Elements of a row that a lane merges.
    static constexpr int kPer = Tr::kDim / 32;
    using Packet = std::conditional_t<kPer == 4, float4, float2>;

    const float2* maxima;
    const float* sums;
    // From a part to the next, in rows.
    std::int64_t stride;

    __device__ Parts(const Arguments& a, const Segment& segment, int row_block, int row)
        : stride(static_cast<std::int64_t>(a.row_blocks) * Tr::kRows) {
        const std::int64_t first = part_row<Tr>(a, segment.first_slot, row_block) + row;
        maxima = a.workspace.maxima + first;
        sums = a.workspace.partials + first * Tr::kDim + threadIdx.x % 32 * kPer;
    }

    __device__ float2 maximum(int part) const { return __ldcg(maxima + part * stride); }
    __device__ Packet packet(int part) const {
        return __ldcg(reinterpret_cast<const Packet*>(sums + part * stride * Tr::kDim));
    }
};

// A row that is being merged by one warp.
template <class Tr>
struct Merged {
    float sums[Parts<Tr>::kPer] = {};
    float total = 0.0f;

    // Adds part number `lane` of those whose factors and weighted totals the lanes hold.
    __device__ __forceinline__ void add(const typename Parts<Tr>::Packet& packet, float factor,
                                        float weighted, int lane) {
        float values[Parts<Tr>::kPer];
        memcpy(values, &packet, sizeof(packet));
        const float scale = __shfl_sync(0xffffffffu, factor, lane);
        total += __shfl_sync(0xffffffffu, weighted, lane);
#pragma unroll
        for (int index = 0; index < Parts<Tr>::kPer; ++index) sums[index] += scale * values[index];
    }
};

__device__ __forceinline__ float largest_of_warp(float value) {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) {
        value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, distance));
    }
    return value;
}

// A few parts at a time: their maxima and their sums are asked for together, and a new maximum
// shrinks what was added before.
template <class Tr>
__device__ __forceinline__ Merged<Tr> merge_at_once(const Parts<Tr>& parts, int count) {
    // As many as leave the kernel its registers.
    constexpr int kAtOnce = 16;
    const int lane = threadIdx.x % 32;
    Merged<Tr> merged;
    float top = -INFINITY;
    for (int group = 0; group < count; group += kAtOnce) {
        const int present = min(kAtOnce, count - group);
        float2 mine = {-INFINITY, 0.0f};
        if (lane < present) mine = parts.maximum(group + lane);
        typename Parts<Tr>::Packet packets[kAtOnce];
#pragma unroll
        for (int part = 0; part < kAtOnce; ++part) {
            if (part < present) packets[part] = parts.packet(group + part);
        }
        const float new_top = largest_of_warp(fmaxf(top, mine.x));
        const float shrunk = device::shrink(top, new_top);
        top = new_top;
        merged.total *= shrunk;
#pragma unroll
        for (float& sum : merged.sums) sum *= shrunk;
        const float factor = device::shrink(mine.x, top);
#pragma unroll
        for (int part = 0; part < kAtOnce; ++part) {
            if (part >= present) break;
            merged.add(packets[part], factor, mine.y * factor, part);
        }
    }
    return merged;
}

// The maxima first, then part after part: one wait more, and few registers. Two tiles of rows leave
// none for more; what the main loop then keeps in memory doubles its time.
template <class Tr>
__device__ __forceinline__ Merged<Tr> merge_in_turn(const Parts<Tr>& parts, int count) {
    const int lane = threadIdx.x % 32;
    float top = -INFINITY;
    for (int part = lane; part < count; part += 32) top = fmaxf(top, parts.maximum(part).x);
    top = largest_of_warp(top);
    Merged<Tr> merged;
    for (int group = 0; group < count; group += 32) {
        float2 mine = {-INFINITY, 0.0f};
        if (group + lane < count) mine = parts.maximum(group + lane);
        const float factor = device::shrink(mine.x, top);
        const int present = min(32, count - group);
#pragma unroll 16
        for (int part = 0; part < present; ++part) {
            merged.add(parts.packet(group + part), factor, mine.y * factor, part);
        }
    }
    return merged;
}

// The result of an item from its parts, one row a warp at a time.
template <class Tr>
__device__ void merge_parts(const Arguments& a, const Segment& segment, int row_block) {
    constexpr int kPairs = Parts<Tr>::kPer / 2;
    const int rows = min(Tr::kRows, a.rows - row_block * Tr::kRows);
    for (int row = threadIdx.x / 32; row < rows; row += kWarps) {
        const Parts<Tr> parts(a, segment, row_block, row);
        Merged<Tr> merged;
        if constexpr (Tr::kRowTiles == 1) {
            merged = merge_at_once<Tr>(parts, segment.parts);
        } else {
            merged = merge_in_turn<Tr>(parts, segment.parts);
        }
        auto* out =
            reinterpret_cast<std::uint32_t*>(out_row<Tr>(a, segment, row_block * Tr::kRows + row));
        const float scale = a.value_scale / merged.total;
#pragma unroll
        for (int pair = 0; pair < kPairs; ++pair) {
            // A row that sees nothing gives 0.
            const float first = merged.total > 0.0f ? merged.sums[2 * pair] * scale : 0.0f;
            const float second = merged.total > 0.0f ? merged.sums[2 * pair + 1] * scale : 0.0f;
            out[threadIdx.x % 32 * kPairs + pair] = pack_out<Tr>(a, first, second);
        }
    }
}

// Announces this block's part; true in all threads of the block that brings the last one.
__device__ inline bool arrive(const Arguments& a, const Segment& segment, int row_block) {
    bool is_last = false;
    if (threadIdx.x < 32) {
        // Makes the part, which this warp has stored, visible to the device before its arrival is.
        // The other warps have no stores to wait for, and their copies stay in flight.
        __threadfence();
        __syncwarp();
        if (threadIdx.x == 0) {
            std::int32_t* counter = a.workspace.counters + segment.item * a.row_blocks + row_block;
            is_last = atomicAdd(counter, 1) == segment.parts - 1;
            // Ready for the next launch.
            if (is_last) *counter = 0;
            __threadfence();
        }
    }
    // Orders the other blocks' parts before anyone here reads them.
    return __syncthreads_or(is_last);
}

}  // namespace decode
