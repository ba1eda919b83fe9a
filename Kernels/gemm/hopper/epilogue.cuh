// From accumulators in registers to the result in global memory.
#pragma once

#include <cstdint>

#include "Kernels/device/ptx/mma.cuh"
#include "Kernels/device/ptx/named_barrier.cuh"
#include "Kernels/device/ptx/tma.cuh"
#include "Kernels/gemm/hopper/traits.cuh"

namespace gemm::hopper {

// One per consumer; sums.cuh has those before.
constexpr int kFirstStoreBarrier = 4;

// Offset of a 16-byte piece in a chunk's row: swizzled as TMA does for such lines, so that neither
// a column nor a row of pieces has bank conflicts.
template <class Traits>
__device__ __forceinline__ std::uint8_t* piece_at(std::uint8_t* chunk, int row, int piece) {
    constexpr int kLineBytes = Traits::kChunk * 2;
    constexpr int kPieces = kLineBytes / 16;
    return chunk + row * kLineBytes + ((piece ^ row / (8 / kPieces)) % kPieces) * 16;
}

// The warp's 16 rows of a chunk of columns, from registers to shared memory.
template <class Traits>
__device__ __forceinline__ void stage_chunk(std::uint8_t* lines, int chunk,
                                            const Sums<Traits>& sums) {
    using Out = typename Traits::Out;
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int pair = 0; pair < Traits::kChunk / 16; ++pair) {
        const float* d = &sums[chunk * Traits::kChunk / 2 + pair * 8];
        ptx::store_matrices(
            ptx::shared_address(piece_at<Traits>(lines, lane % 16, pair * 2 + lane / 16)),
            narrow_pair<Out>(d[0], d[1]), narrow_pair<Out>(d[2], d[3]),
            narrow_pair<Out>(d[4], d[5]), narrow_pair<Out>(d[6], d[7]));
    }
}

// Each warp stores its 16 rows by TMA and moves on while they are written.
template <class Traits>
__device__ void store_boxes(const Operands& operands, const Tile& tile,
                            typename Traits::SharedStorage& shared, int first_row,
                            const Sums<Traits>& sums) {
    const bool first_lane = threadIdx.x % 32 == 0;
    const int row = static_cast<int>(tile.row) + first_row + threadIdx.x % 128 / 32 * 16;
    auto& chunks = shared.out[threadIdx.x / 32 - 4];
    if (first_lane) ptx::wait_for_boxes_read();  // the previous tile's boxes have been read
    __syncwarp();
#pragma unroll
    for (int chunk = 0; chunk < Traits::kStagedChunks; ++chunk) {
        stage_chunk<Traits>(chunks[chunk], chunk, sums);
    }
    ptx::fence_async_proxy();
    __syncwarp();  // the warp's lines are complete
    if (!first_lane) return;
    // TMA leaves out what is past the last column or row.
    for (int chunk = 0; chunk < Traits::kStagedChunks; ++chunk) {
        ptx::store_box(operands.out, chunks[chunk], tile.column + chunk * Traits::kChunk, row);
    }
    ptx::commit_boxes();
}

// Each warp writes its 16 rows, a chunk of columns at a time, through shared memory, so that stores
// cover whole lines.
template <class Traits>
__device__ void store_tile(const Gemm& p, const Tile& tile, typename Traits::SharedStorage& shared,
                           int first_row, Part columns, const Sums<Traits>& sums) {
    using Out = typename Traits::Out;
    constexpr int kPieces = Traits::kChunk / 8;
    const int lane = threadIdx.x % 32;
    const int warp_row = first_row + threadIdx.x % 128 / 32 * 16;
    std::uint8_t* lines = shared.out[threadIdx.x / 32 - 4][0];
    Out* out = static_cast<Out*>(p.out);
    const int first = tile.column + columns.begin * 8;
    const int end = min(p.shape.n, tile.column + columns.end * 8);
    if (warp_row >= Traits::kRows) return;  // all of a short tile's rows belong to earlier warps
#pragma unroll
    for (int chunk = 0; chunk < Traits::kColumns / Traits::kChunk; ++chunk) {
        stage_chunk<Traits>(lines, chunk, sums);
        __syncwarp();  // the warp's lines are complete
#pragma unroll
        for (int i = 0; i < 16 * kPieces / 32; ++i) {
            const int row = i * (32 / kPieces) + lane / kPieces, piece = lane % kPieces;
            const int column = tile.column + chunk * Traits::kChunk + piece * 8;
            const std::int64_t at = tile.row + warp_row + row;
            if (at < tile.limit && column >= first && column < end) {
                *reinterpret_cast<uint4*>(out + at * p.shape.n + column) =
                    *reinterpret_cast<const uint4*>(piece_at<Traits>(lines, row, piece));
            }
        }
        __syncwarp();  // they have been read before the next chunk overwrites them
    }
}

// A consumer stores 64 rows of a transposed tile by TMA, those of the eights of columns that are
// its block's, and moves on while they are written.
template <class Traits>
__device__ void store_transposed(const Gemm& p, const Operands& operands, const Tile& tile,
                                 typename Traits::SharedStorage& shared, int consumer,
                                 int first_row, Part eights, const Sums<Traits>& sums) {
    using Out = typename Traits::Out;
    const int lane = threadIdx.x % 32, warp = threadIdx.x % 128 / 32;
    const bool first = threadIdx.x % 128 == 0;
    auto& boxes = shared.out[consumer];
    const auto sync = [&] { ptx::named_barrier_sync(kFirstStoreBarrier + consumer, 128); };
    const int row = static_cast<int>(tile.row) + first_row;
    // Four matrices at a time: 16 rows of one eight of columns, and of the next.
    const int column = lane % 8, piece = warp * 2 + lane / 8 % 2;
    const int at = column * 128 + (piece ^ column) * 16;
#pragma unroll
    for (int start = 0; start < Traits::kColumns / 8; start += Traits::kStagedBoxes) {
        const int count = min(Traits::kStagedBoxes, Traits::kColumns / 8 - start);
        if (first) ptx::wait_for_boxes_read();  // the previous boxes have been read
        sync();
#pragma unroll
        for (int box = 0; box < count; box += 2) {
            const float* d = &sums[(start + box) * 4];
            ptx::store_matrices_transposed(
                ptx::shared_address(boxes[box + lane / 16] + at), narrow_pair<Out>(d[0], d[1]),
                narrow_pair<Out>(d[2], d[3]), narrow_pair<Out>(d[4], d[5]),
                narrow_pair<Out>(d[6], d[7]));
        }
        ptx::fence_async_proxy();
        sync();  // the boxes are complete
        if (!first || row >= p.shape.rows) continue;
        const int end = min(min(start + count, eights.end), (p.shape.n - tile.column + 7) / 8);
        for (int eight = max(start, eights.begin); eight < end; ++eight) {
            ptx::store_box(operands.out, boxes[eight - start], row, tile.column + eight * 8);
        }
        ptx::commit_boxes();
    }
}

}  // namespace gemm::hopper
