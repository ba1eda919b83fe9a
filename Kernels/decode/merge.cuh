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

// A row of an item from its parts, by one warp, a few parts at a time: their maxima and their sums
// are asked for together, and a new maximum shrinks what was added before.
template <class Tr>
__device__ __forceinline__ void merge_row(const Arguments& a, const Segment& segment, int row_block,
                                          int row) {
    // As many as leave the kernel its registers.
    constexpr int kAtOnce = 16;
    constexpr int kPer = Tr::kDim / 32;
    using Packet = std::conditional_t<kPer == 4, float4, float2>;
    const int lane = threadIdx.x % 32;
    // From a part to the next.
    const std::int64_t stride = static_cast<std::int64_t>(a.row_blocks) * Tr::kRows;
    const std::int64_t first = part_row<Tr>(a, segment.first_slot, row_block) + row;
    const float2* maxima = a.workspace.maxima + first;
    const float* parts = a.workspace.partials + first * Tr::kDim + lane * kPer;
    float sums[kPer] = {}, top = -INFINITY, total = 0.0f;
    for (int group = 0; group < segment.parts; group += kAtOnce) {
        const int count = min(kAtOnce, segment.parts - group);
        float2 mine = {-INFINITY, 0.0f};
        if (lane < count) mine = __ldcg(maxima + (group + lane) * stride);
        Packet packets[kAtOnce];
#pragma unroll
        for (int part = 0; part < kAtOnce; ++part) {
            const float* from = parts + (group + part) * stride * Tr::kDim;
            if (part < count) packets[part] = __ldcg(reinterpret_cast<const Packet*>(from));
        }
        float new_top = fmaxf(top, mine.x);
#pragma unroll
        for (int distance = 16; distance > 0; distance /= 2) {
            new_top = fmaxf(new_top, __shfl_xor_sync(0xffffffffu, new_top, distance));
        }
        const float shrunk = device::shrink(top, new_top);
        top = new_top;
        total *= shrunk;
#pragma unroll
        for (float& sum : sums) sum *= shrunk;
        const float factor = device::shrink(mine.x, top);
        const float weighted = mine.y * factor;
#pragma unroll
        for (int part = 0; part < kAtOnce; ++part) {
            if (part >= count) break;
            float values[kPer];
            memcpy(values, &packets[part], sizeof(Packet));
            const float scale = __shfl_sync(0xffffffffu, factor, part);
            total += __shfl_sync(0xffffffffu, weighted, part);
#pragma unroll
            for (int index = 0; index < kPer; ++index) sums[index] += scale * values[index];
        }
    }
    auto* out =
        reinterpret_cast<std::uint32_t*>(out_row<Tr>(a, segment, row_block * Tr::kRows + row));
    const float scale = a.value_scale / total;
#pragma unroll
    for (int pair = 0; pair < kPer / 2; ++pair) {
        const float first_value = total > 0.0f ? sums[2 * pair] * scale : 0.0f;
        const float second_value = total > 0.0f ? sums[2 * pair + 1] * scale : 0.0f;
        out[lane * (kPer / 2) + pair] = pack_out<Tr>(a, first_value, second_value);
    }
}

// The result of an item from its parts.
template <class Tr>
__device__ void merge_parts(const Arguments& a, const Segment& segment, int row_block) {
    const int rows = min(Tr::kRows, a.rows - row_block * Tr::kRows);
    for (int row = threadIdx.x / 32; row < rows; row += kWarps) {
        merge_row<Tr>(a, segment, row_block, row);
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
