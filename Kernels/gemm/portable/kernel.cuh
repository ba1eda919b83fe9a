// Portable tensor-core product: mma.sync with fp32 sums, operands through a cp.async pipeline.
//
// A block has kRows x kColumns of the result, its warps kWarpRows x kWarpColumns each. A stage is
// 128 bytes of k of both operands: rows of 128 bytes whose 16-byte pieces are swizzled (piece ^ row
// % 8), so that eight rows of one piece, which ldmatrix reads at once, lie in different banks.
// 16-bit and 8-bit operands have the same fragments, byte for byte: 32 bytes of k per instruction.
// FP8 sums of one stage (128 of k, one block of scales) are scaled and promoted to the totals.
#pragma once

#include <cstdint>

#include "Kernels/device/ptx/cp_async.cuh"
#include "Kernels/device/ptx/mma.cuh"
#include "Kernels/gemm/element.cuh"
#include "Kernels/gemm/scheduler.cuh"

namespace gemm::portable {

namespace ptx = device::ptx;

constexpr int kStageBytes = 128;  // of k, per row
constexpr int kPieceBytes = 16;

template <class T, int kRowsValue, int kColumnsValue, int kWarpRowsValue, int kWarpColumnsValue,
          int kStagesValue>
struct Traits {
    using Element = T;
    using Out = OutOf<T>;
    static constexpr int kRows = kRowsValue;
    static constexpr int kColumns = kColumnsValue;
    static constexpr int kWarpRows = kWarpRowsValue;
    static constexpr int kWarpColumns = kWarpColumnsValue;
    static constexpr int kStages = kStagesValue;
    static constexpr int kThreads = kRows / kWarpRows * (kColumns / kWarpColumns) * 32;
    static constexpr int kDepth = kStageBytes / sizeof(T);
    static constexpr int kRowFragments = kWarpRows / 16;
    static constexpr int kColumnFragments = kWarpColumns / 8;

    static_assert(kColumnFragments % 2 == 0, "fragments of b are loaded in pairs");
    static_assert(!kScaled<T> || kScaleBlock % kColumns == 0, "a tile has one scale of b");
    static_assert((kRows + kColumns) * 8 % kThreads == 0,
                  "every thread copies the same number of pieces");

    struct SharedStorage {
        alignas(128) std::uint8_t a[kStages][kRows * kStageBytes];
        alignas(128) std::uint8_t b[kStages][kColumns * kStageBytes];
        TileList list;
    };
};

__device__ __forceinline__ int piece_offset(int row, int piece) {
    return row * kStageBytes + ((piece ^ (row & 7)) * kPieceBytes);
}

// Issues the copies of one stage; past the end of k it only commits, to keep the group count right.
template <class Traits>
__device__ void fill_stage(const Gemm& p, const Tile& tile, typename Traits::SharedStorage& shared,
                           int stage, int step, int steps) {
    if (step < steps) {
        using T = typename Traits::Element;
        const std::int64_t line_bytes = std::int64_t{p.shape.k} * sizeof(T);
        const auto* a = static_cast<const std::uint8_t*>(p.a);
        const auto* b = static_cast<const std::uint8_t*>(p.b);
        constexpr int kPieces = (Traits::kRows + Traits::kColumns) * 8;
#pragma unroll
        for (int i = 0; i < kPieces / Traits::kThreads; ++i) {
            const int number = i * Traits::kThreads + threadIdx.x;
            const int line = number / 8, piece = number % 8;
            const std::int64_t at = std::int64_t{step} * kStageBytes + piece * kPieceBytes;
            if (line < Traits::kRows) {
                const bool exists = tile.row + line < tile.limit && at < line_bytes;
                const std::uint8_t* from = a + (exists ? (tile.row + line) * line_bytes + at : 0);
                ptx::copy_async_16_alone_or_zero(
                    ptx::shared_address(&shared.a[stage][piece_offset(line, piece)]), from, exists);
            } else {
                const int column = line - Traits::kRows;
                const bool exists = tile.column + column < p.shape.n && at < line_bytes;
                const std::int64_t row =
                    std::int64_t{tile.group} * p.shape.n + tile.column + column;
                const std::uint8_t* from = b + (exists ? row * line_bytes + at : 0);
                ptx::copy_async_16_alone_or_zero(
                    ptx::shared_address(&shared.b[stage][piece_offset(column, piece)]), from,
                    exists);
            }
        }
    }
    ptx::commit_copies();
}

template <class Traits>
using Sums = float[Traits::kRowFragments][Traits::kColumnFragments][4];

// Multiplies one stage into `sums`.
template <class Traits>
__device__ __forceinline__ void multiply_stage(typename Traits::SharedStorage& shared, int stage,
                                               Sums<Traits>& sums, int warp_row, int warp_column) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int step = 0; step < kStageBytes / 32; ++step) {
        unsigned a[Traits::kRowFragments][4], b[Traits::kColumnFragments / 2][4];
#pragma unroll
        for (int i = 0; i < Traits::kRowFragments; ++i) {
            const int row = warp_row + i * 16 + lane % 16;
            ptx::load_matrices(
                a[i],
                ptx::shared_address(&shared.a[stage][piece_offset(row, step * 2 + lane / 16)]));
        }
#pragma unroll
        for (int j = 0; j < Traits::kColumnFragments / 2; ++j) {
            const int column = warp_column + j * 16 + lane / 16 * 8 + lane % 8;
            ptx::load_matrices(
                b[j], ptx::shared_address(
                          &shared.b[stage][piece_offset(column, step * 2 + lane / 8 % 2)]));
        }
#pragma unroll
        for (int i = 0; i < Traits::kRowFragments; ++i) {
#pragma unroll
            for (int j = 0; j < Traits::kColumnFragments; ++j) {
                ptx::multiply_add(sums[i][j], a[i], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1],
                                  typename Traits::Element{});
            }
        }
    }
}

// totals += sums * scales, and sums = 0.
template <class Traits>
__device__ __forceinline__ void promote(const Gemm& p, const Tile& tile, int step, int warp_row,
                                        Sums<Traits>& sums, Sums<Traits>& totals) {
    const float b_scale = b_scales_of(p, tile)[step];
    const float* a_scales = a_scales_of(p, tile) + step * a_scale_line(p.shape);
    const int lane_row = threadIdx.x % 32 / 4;
#pragma unroll
    for (int i = 0; i < Traits::kRowFragments; ++i) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int row = warp_row + i * 16 + half * 8 + lane_row;
            const float scale = tile.row + row < tile.limit ? b_scale * a_scales[row] : 0.0f;
#pragma unroll
            for (int j = 0; j < Traits::kColumnFragments; ++j) {
#pragma unroll
                for (int e = 0; e < 2; ++e) {
                    totals[i][j][half * 2 + e] += scale * sums[i][j][half * 2 + e];
                    sums[i][j][half * 2 + e] = 0.0f;
                }
            }
        }
    }
}

template <class Traits>
__device__ __forceinline__ void store(const Gemm& p, const Tile& tile, int warp_row,
                                      int warp_column, const Sums<Traits>& totals) {
    using Out = typename Traits::Out;
    Out* out = static_cast<Out*>(p.out);
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < Traits::kRowFragments; ++i) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const std::int64_t row = tile.row + warp_row + i * 16 + half * 8 + lane / 4;
            if (row >= tile.limit) continue;
#pragma unroll
            for (int j = 0; j < Traits::kColumnFragments; ++j) {
                const int column = tile.column + warp_column + j * 8 + lane % 4 * 2;
                // n is even, so a pair is either inside or outside.
                if (column >= p.shape.n) continue;
                const float* pair = &totals[i][j][half * 2];
                *reinterpret_cast<unsigned*>(out + row * p.shape.n + column) =
                    narrow_pair<Out>(pair[0], pair[1]);
            }
        }
    }
}

template <class Traits>
__global__ void __launch_bounds__(Traits::kThreads)
    gemm_kernel(const __grid_constant__ Gemm p, const __grid_constant__ Walk walk) {
    extern __shared__ std::uint8_t shared_bytes[];
    auto& shared = *reinterpret_cast<typename Traits::SharedStorage*>(shared_bytes);
    constexpr int kStages = Traits::kStages;
    constexpr int kWarpsAcross = Traits::kColumns / Traits::kWarpColumns;
    const int warp = threadIdx.x / 32;
    const int warp_row = warp / kWarpsAcross * Traits::kWarpRows;
    const int warp_column = warp % kWarpsAcross * Traits::kWarpColumns;
    if (warp == 0) make_list<Traits::kRows>(p, p.shape.layout, shared.list);
    __syncthreads();  // the list is complete
    const int tiles = tile_count(shared.list, walk);
    const int steps = (p.shape.k + Traits::kDepth - 1) / Traits::kDepth;
    for (int number = blockIdx.x; number < tiles; number += gridDim.x) {
        const Tile tile =
            tile_at<Traits::kRows, Traits::kColumns>(p, p.shape.layout, shared.list, walk, number);
        Sums<Traits> sums = {}, totals = {};
        for (int stage = 0; stage < kStages - 1; ++stage) {
            fill_stage<Traits>(p, tile, shared, stage, stage, steps);
        }
        for (int step = 0; step < steps; ++step) {
            ptx::wait_for_copies<kStages - 2>();
            // This step's stage has arrived for all threads, and all have read the one filled next.
            __syncthreads();
            fill_stage<Traits>(p, tile, shared, (step + kStages - 1) % kStages, step + kStages - 1,
                               steps);
            multiply_stage<Traits>(shared, step % kStages, sums, warp_row, warp_column);
            if constexpr (kScaled<typename Traits::Element>) {
                promote<Traits>(p, tile, step, warp_row, sums, totals);
            }
        }
        if constexpr (kScaled<typename Traits::Element>) {
            store<Traits>(p, tile, warp_row, warp_column, totals);
        } else {
            store<Traits>(p, tile, warp_row, warp_column, sums);
        }
        __syncthreads();  // the stages have been read before the next tile fills them
    }
}

}  // namespace gemm::portable
