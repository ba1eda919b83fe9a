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
                const float scale = 1.0f / total;
#pragma unroll
                for (int eight = 0; eight < Tr::kDim / 8; ++eight) {
                    const auto& four = softmax.sums[tile][eight];
                    // A row that sees nothing gives 0, whatever was in the ring.
                    const float first = total > 0.0f ? four[2 * half] * scale : 0.0f;
                    const float second = total > 0.0f ? four[2 * half + 1] * scale : 0.0f;
                    out[eight * 4 + lane % 4] = device::pack_pair(first, second, typename Tr::T{});
                }
            } else {
                const std::int64_t at = part_row<Tr>(a, segment.slot, row_block) + in_block;
                float* part = a.workspace.partials + at * Tr::kDim;
#pragma unroll
                for (int eight = 0; eight < Tr::kDim / 8; ++eight) {
                    const auto& four = softmax.sums[tile][eight];
                    *reinterpret_cast<float2*>(part + eight * 8 + lane % 4 * 2) = {
                        four[2 * half], four[2 * half + 1]};
                }
                if (lane % 4 == 0) {
                    a.workspace.maxima[at] = {softmax.largest[tile][half], total};
                }
            }
        }
    }
}

// The result of an item from its parts, in the order of the parts. One row a warp at a time.
template <class Tr>
__device__ void merge_parts(const Arguments& a, const Segment& segment, int row_block) {
    constexpr int kPer = Tr::kDim / 32;
    using Packet = std::conditional_t<kPer == 4, float4, float2>;
    const int lane = threadIdx.x % 32;
    const int rows = min(Tr::kRows, a.rows - row_block * Tr::kRows);
    // From a part to the next.
    const std::int64_t stride = static_cast<std::int64_t>(a.row_blocks) * Tr::kRows;
    for (int row = threadIdx.x / 32; row < rows; row += kWarps) {
        const std::int64_t first = part_row<Tr>(a, segment.first_slot, row_block) + row;
        const float2* maxima = a.workspace.maxima + first;
        const float* parts = a.workspace.partials + first * Tr::kDim + lane * kPer;
        float top = -INFINITY;
        for (int part = lane; part < segment.parts; part += 32) {
            top = fmaxf(top, __ldcg(maxima + part * stride).x);
        }
#pragma unroll
        for (int distance = 16; distance > 0; distance /= 2) {
            top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, distance));
        }
        float sums[kPer] = {}, total = 0.0f;
        for (int group = 0; group < segment.parts; group += 32) {
            float2 mine = {-INFINITY, 0.0f};
            if (group + lane < segment.parts) mine = __ldcg(maxima + (group + lane) * stride);
            const float factor = device::shrink(mine.x, top);
            const float weighted = mine.y * factor;
            const int count = min(32, segment.parts - group);
#pragma unroll 16
            for (int part = 0; part < count; ++part) {
                const float* from = parts + (group + part) * stride * Tr::kDim;
                const Packet packet = __ldcg(reinterpret_cast<const Packet*>(from));
                float values[kPer];
                memcpy(values, &packet, sizeof(packet));
                const float scale = __shfl_sync(0xffffffffu, factor, part);
                total += __shfl_sync(0xffffffffu, weighted, part);
#pragma unroll
                for (int index = 0; index < kPer; ++index) sums[index] += scale * values[index];
            }
        }
        auto* out =
            reinterpret_cast<std::uint32_t*>(out_row<Tr>(a, segment, row_block * Tr::kRows + row));
#pragma unroll
        for (int pair = 0; pair < kPer / 2; ++pair) {
            const float first_value = total > 0.0f ? sums[2 * pair] / total : 0.0f;
            const float second_value = total > 0.0f ? sums[2 * pair + 1] / total : 0.0f;
            out[lane * (kPer / 2) + pair] =
                device::pack_pair(first_value, second_value, typename Tr::T{});
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
