// From sums in tensor memory to the result in global memory.
#pragma once

#include <cstdint>

#include "Kernels/device/ptx/cluster.cuh"
#include "Kernels/device/ptx/mbarrier.cuh"
#include "Kernels/device/ptx/packed.cuh"
#include "Kernels/device/ptx/pair.cuh"
#include "Kernels/device/ptx/registers.cuh"
#include "Kernels/device/ptx/tcgen05.cuh"
#include "Kernels/device/ptx/tma.cuh"
#include "Kernels/gemm/blackwell/traits.cuh"

namespace gemm::blackwell {

namespace ptx = device::ptx;

// Calls `body` for each of this block's tiles.
template <class Traits, class Body>
__device__ __forceinline__ void for_each_tile(const Gemm& p, const TileList& list, const Walk& walk,
                                              Body body) {
    const int tiles = tile_count(list, walk);
    const int stride = gridDim.x / Traits::kBlocks;
    for (int number = blockIdx.x / Traits::kBlocks; number < tiles; number += stride) {
        body(tile_at<Traits::kRows, Traits::kColumns>(p, p.shape.layout, list, walk, number));
    }
}

template <class Traits>
__device__ __forceinline__ int steps_of(const Gemm& p) {
    return (p.shape.k + Traits::kDepth - 1) / Traits::kDepth;
}

// Waits for arrivals that may come from the other block of a pair.
template <class Traits>
__device__ __forceinline__ void wait(std::uint64_t* barrier, unsigned parity) {
    if constexpr (Traits::kBlocks == 1) {
        ptx::mbarrier_wait(barrier, parity);
    } else {
        while (!ptx::mbarrier_try_wait_cluster(barrier, parity)) {
        }
    }
}

// 64 columns of a thread's row, in pairs for packed arithmetic.
using Line = float2[32];

// From tensor memory, complete on return.
__device__ __forceinline__ void load_line(std::uint32_t address, Line& line) {
    std::uint32_t words[2][32];
    ptx::tensor_load(words[0], address);
    ptx::tensor_load(words[1], address + 32);
    ptx::tensor_wait_for_loads();
    ptx::pin(words[0]);
    ptx::pin(words[1]);
#pragma unroll
    for (int i = 0; i < 32; ++i) {
        const std::uint32_t* pair = &words[i / 16][i % 16 * 2];
        line[i] = {__uint_as_float(pair[0]), __uint_as_float(pair[1])};
    }
}

// Tells the products that this warp has read a buffer.
template <class Traits>
__device__ __forceinline__ void release(std::uint64_t* stored) {
    ptx::tensor_fence_before_sync();
    __syncwarp();
    if (threadIdx.x % 32 != 0) return;
    if constexpr (Traits::kBlocks == 1) {
        ptx::mbarrier_arrive(stored);
    } else {
        ptx::mbarrier_arrive_at(ptx::peer_address(stored, 0));
    }
}

// Rounded, as 16-byte pieces.
template <class Out>
__device__ __forceinline__ uint4 piece_of(const Line& line, int piece) {
    const float2* at = &line[piece * 4];
    return {narrow_pair<Out>(at[0].x, at[0].y), narrow_pair<Out>(at[1].x, at[1].y),
            narrow_pair<Out>(at[2].x, at[2].y), narrow_pair<Out>(at[3].x, at[3].y)};
}

// The warp's 32 rows of 64 columns: by TMA through shared memory under the 128-byte swizzle, or
// each thread its own row.
template <class Traits>
__device__ __forceinline__ void store_line(const Gemm& p, const Operands& operands,
                                           const Tile& tile, std::uint8_t* staged,
                                           std::int64_t first_row, int column, const Line& line) {
    using Out = typename Traits::Out;
    const int lane = threadIdx.x % 32;
    if (column >= p.shape.n) return;
    if (!operands.stores_boxes) {
        if (first_row + lane >= tile.limit) return;
        Out* out = static_cast<Out*>(p.out) + (first_row + lane) * p.shape.n + column;
#pragma unroll
        for (int piece = 0; piece < 8; ++piece) {
            if (column + piece * 8 < p.shape.n) {
                reinterpret_cast<uint4*>(out)[piece] = piece_of<Out>(line, piece);
            }
        }
        return;
    }
    if (lane == 0) ptx::wait_for_boxes_read();  // the one before has been read
    __syncwarp();
#pragma unroll
    for (int piece = 0; piece < 8; ++piece) {
        *reinterpret_cast<uint4*>(staged + lane * 128 + (piece ^ lane % 8) * 16) =
            piece_of<Out>(line, piece);
    }
    ptx::fence_async_proxy();
    __syncwarp();  // the warp's lines are complete
    if (lane != 0) return;
    ptx::store_box(operands.out, staged, column, static_cast<int>(first_row));
    ptx::commit_boxes();
}

// FP8: scales the sums of every step and adds them up.
template <class Traits>
__device__ __forceinline__ void add_scaled_steps(const Gemm& p, const Tile& tile, int row,
                                                 std::uint32_t lanes,
                                                 typename Traits::SharedStorage& shared,
                                                 Ring<Traits::kBuffers>& buffers, Line& totals) {
    const int steps = steps_of<Traits>(p);
    const std::int64_t line = a_scale_line(p.shape);
    const float* a_scale = a_scales_of(p, tile) + row;
    const float* b_scale = b_scales_of(p, tile);
    const bool exists = tile.in_group + row < line;
    for (int i = 0; i < 32; ++i) totals[i] = {0, 0};
    for (int step = 0; step < steps; ++step) {
        const float scale = exists ? a_scale[step * line] * b_scale[step] : 0;
        wait<Traits>(&shared.summed[buffers.stage], buffers.parity);
        ptx::tensor_fence_after_sync();
        Line sums;
        load_line(lanes + buffers.stage * Traits::kColumns, sums);
        release<Traits>(&shared.stored[buffers.stage]);
        buffers.advance();
#pragma unroll
        for (int i = 0; i < 32; ++i) {
            totals[i] = ptx::multiply_add_pair(sums[i], {scale, scale}, totals[i]);
        }
    }
}

template <class Traits>
__device__ void store(const Gemm& p, const Operands& operands, int rank,
                      std::uint32_t tensor_memory, typename Traits::SharedStorage& shared) {
    const int warp = threadIdx.x / 32 - 4;
    const int group_column = warp / 4 * Traits::kGroupColumns;
    const int first_row = rank * Traits::kBlockRows + warp % 4 * 32;
    const std::uint32_t lanes =
        tensor_memory + (static_cast<std::uint32_t>(warp % 4) * 32 << 16) + group_column;
    std::uint8_t* staged = shared.out[warp];
    constexpr bool kTimesScale = kTensorScaled<typename Traits::Element>;
    const float tensor_scale = kTimesScale ? __ldg(p.tensor_scale) : 1.0f;
    Ring<Traits::kBuffers> buffers;
    for_each_tile<Traits>(p, shared.list, operands.walk, [&](const Tile& tile) {
        const int column = tile.column + group_column;
        Line line;
        if constexpr (kScaled<typename Traits::Element>) {
            const int row = first_row + static_cast<int>(threadIdx.x % 32);
            add_scaled_steps<Traits>(p, tile, row, lanes, shared, buffers, line);
            store_line<Traits>(p, operands, tile, staged, tile.row + first_row, column, line);
        } else {
            wait<Traits>(&shared.summed[buffers.stage], buffers.parity);
            ptx::tensor_fence_after_sync();
            for (int start = 0; start < Traits::kGroupColumns; start += 64) {
                load_line(lanes + buffers.stage * Traits::kColumns + start, line);
                if (start + 64 == Traits::kGroupColumns) {
                    release<Traits>(&shared.stored[buffers.stage]);
                }
                if constexpr (kTimesScale) {
#pragma unroll
                    for (int i = 0; i < 32; ++i) {
                        line[i] = ptx::multiply_pair(line[i], {tensor_scale, tensor_scale});
                    }
                }
                store_line<Traits>(p, operands, tile, staged, tile.row + first_row, column + start,
                                   line);
            }
            buffers.advance();
        }
    });
    if (threadIdx.x % 32 == 0) ptx::wait_for_boxes_read();
}

}  // namespace gemm::blackwell
