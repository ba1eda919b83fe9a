// Attention of each query over one range of rows, on warp-wide tensor-core products; serves sm_90a
// and sm_100a alike.
//
// A block computes kTileRows rows of queries: the heads of one group for as many tokens as fit, so
// that a tile of 8 tokens and 16 heads reads little more than the keys of one token. Warp w has the
// rows from 16 w on. Keys and values come in chunks of kChunk through two stages that all warps
// share: while one is used the next is filled.
#pragma once

#include <cstdint>

#include "Kernels/device/ptx/cp_async.cuh"
#include "Kernels/nsa/chunk.cuh"
#include "Kernels/nsa/nsa.h"

namespace nsa {

template <class Element, int kHeadDim, int kWarpCount, int kChunkKeys>
struct BandedTraits {
    using T = Element;
    static constexpr int kWarps = kWarpCount;
    static constexpr int kThreads = kWarps * 32;
    static constexpr int kTileRows = kWarps * kRows;
    static constexpr int kChunk = kChunkKeys;
    static constexpr int kDim = kHeadDim;
    static constexpr int kUnits = kDim / 8;
    static constexpr int kDepth = kDim / 16;
    static constexpr int kTensorBytes = kChunk * kDim * 2;
    static constexpr int kStageBytes = 2 * kTensorBytes;
    static constexpr int kSharedBytes = 2 * kStageBytes;
    static_assert(kDim % 64 == 0, "units are swizzled in eights");
    static_assert(kTileRows * kDim * 2 <= kSharedBytes, "the stages take the output at the end");
    static_assert(kChunk * kUnits % kThreads == 0, "every thread copies the same amount");
};

// Rows that a position sees, low to high - 1; the same for every sequence.
struct Band {
    Reach reach;
    int size;
    __device__ int low(int position) const {
        return reach == Reach::kWindow ? max(position + 1 - size, 0) : 0;
    }
    __device__ int high(int position) const {
        return reach == Reach::kWindow ? position + 1 : (position + 1) / size;
    }
};

// The keys of a chunk that this thread's two rows see: low to high - 1, relative to its first key.
template <int kChunk>
struct Between {
    static constexpr bool kMayHideRows = true;
    int low[2];
    int high[2];
    // Whether any row of the warp misses a key of the chunk.
    bool some;
    __device__ bool hides_some() const { return some; }
    __device__ bool hides(int row, int key) const { return key < low[row] || key >= high[row]; }
};

// Rows past the last that the tile sees repeat it: they are masked, but must be readable.
template <class Traits>
__device__ __forceinline__ void load_shared_chunk(const Banded& params, std::int64_t first_row,
                                                  int group, int first, int end, uint32_t stage) {
    using T = typename Traits::T;
#pragma unroll
    for (int step = 0; step < Traits::kChunk * Traits::kUnits / Traits::kThreads; ++step) {
        const int index = step * Traits::kThreads + static_cast<int>(threadIdx.x);
        const int row = index / Traits::kUnits;
        const int unit = index % Traits::kUnits;
        const std::int64_t key = first_row + min(first + row, end - 1);
        const std::int64_t offset = (key * params.groups + group) * Traits::kDim + unit * 8;
        const uint32_t place = stage + place_of<Traits>(row, unit);
        device::ptx::copy_async_16(place, static_cast<const T*>(params.keys) + offset);
        device::ptx::copy_async_16(place + Traits::kTensorBytes,
                                   static_cast<const T*>(params.values) + offset);
    }
    device::ptx::commit_copies();
}

// Through the warp's part of shared memory, so that rows are written in whole packets.
template <class Traits, class PlaceOf>
__device__ __forceinline__ void write_rows(const Sums<Traits>& sums, const float (&inverse)[2],
                                           unsigned char* shared, const PlaceOf& place_of_row) {
    using T = typename Traits::T;
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const int row = lane / 4 + 8 * half;
#pragma unroll
        for (int tile = 0; tile < Traits::kDim / 8; ++tile) {
            const uint32_t place = place_of<Traits>(row, tile) + lane % 4 * 4;
            *reinterpret_cast<uint32_t*>(shared + place) =
                device::pack_pair(sums.out[tile][2 * half] * inverse[half],
                                  sums.out[tile][2 * half + 1] * inverse[half], T{});
        }
    }
    // The warp's writes are visible before other lanes read them.
    __syncwarp();
#pragma unroll
    for (int step = 0; step < kRows * Traits::kUnits / 32; ++step) {
        const int index = step * 32 + lane;
        const int row = index / Traits::kUnits;
        const int unit = index % Traits::kUnits;
        if (T* destination = place_of_row(row)) {
            *reinterpret_cast<uint4*>(destination + unit * 8) =
                *reinterpret_cast<const uint4*>(shared + place_of<Traits>(row, unit));
        }
    }
}

template <class Traits>
__global__ void __launch_bounds__(Traits::kThreads)
    banded_kernel(const __grid_constant__ Banded params) {
    using T = typename Traits::T;
    extern __shared__ __align__(128) unsigned char shared[];
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int lane = threadIdx.x % 32;
    const int per_group = params.heads / params.groups;
    const int tokens_of_tile = Traits::kTileRows / per_group;
    // Late tiles of the compressed branch have the most keys: they start first.
    const int first = static_cast<int>(gridDim.x - 1 - blockIdx.x) * tokens_of_tile;
    const int end = min(first + tokens_of_tile, params.sequence);
    const int group = static_cast<int>(blockIdx.y);
    const std::int64_t sequence_token = static_cast<std::int64_t>(blockIdx.z) * params.sequence;
    const Band band = {params.reach, params.size};
    const int rows_of_sequence = params.reach == Reach::kWindow
                                     ? params.sequence
                                     : (params.sequence + params.size - 1) / params.size;
    const std::int64_t first_row = static_cast<std::int64_t>(blockIdx.z) * rows_of_sequence;
    // The rows that the tile sees.
    const int tile_low = band.low(first);
    const int tile_high = band.high(end - 1);

    const uint32_t ring = device::ptx::shared_address(shared);
    if (tile_low < tile_high) {
        load_shared_chunk<Traits>(params, first_row, group, tile_low, tile_high, ring);
    }

    // Offset of one of the warp's rows in queries and out, in heads; -1 if it does not exist.
    const auto head_of = [&](int row) -> std::int64_t {
        const int in_tile = warp * kRows + row;
        const int token = first + in_tile / per_group;
        if (in_tile >= tokens_of_tile * per_group || token >= end) return -1;
        return (sequence_token + token) * params.heads + group * per_group + in_tile % per_group;
    };
    uint32_t query[Traits::kDepth][4];
    load_query<Traits>(query, [&](int row) -> const T* {
        const std::int64_t head = head_of(row);
        return head < 0 ? nullptr : static_cast<const T*>(params.queries) + head * Traits::kDim;
    });
    int low[2];
    int high[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const int position = first + (warp * kRows + lane / 4 + 8 * half) / per_group;
        // Missing rows see what the last one does: they are never written.
        low[half] = band.low(min(position, end - 1));
        high[half] = band.high(min(position, end - 1));
    }
    // Bounds of the warp's rows: every row sees inner_low to inner_high - 1, none anything outside
    // of outer.
    const int warp_first = min(first + warp * kRows / per_group, end - 1);
    const int warp_last = min(first + (warp * kRows + kRows - 1) / per_group, end - 1);
    const int outer_low = band.low(warp_first);
    const int outer_high = band.high(warp_last);
    const int inner_low = band.low(warp_last);
    const int inner_high = band.high(warp_first);

    const float scale_log2 = params.scale * kLog2E;
    Sums<Traits> sums = {};
    sums.largest[0] = sums.largest[1] = -INFINITY;
    int stage = 0;
    for (int chunk = tile_low; chunk < tile_high; chunk += Traits::kChunk) {
        // This chunk has arrived for every thread, and everyone is done with the other stage.
        device::ptx::wait_for_copies<0>();
        __syncthreads();
        if (chunk + Traits::kChunk < tile_high) {
            load_shared_chunk<Traits>(params, first_row, group, chunk + Traits::kChunk, tile_high,
                                      ring + (stage ^ 1) * Traits::kStageBytes);
        }
        if (chunk < outer_high && chunk + Traits::kChunk > outer_low) {
            const Between<Traits::kChunk> mask = {
                {low[0] - chunk, low[1] - chunk},
                {high[0] - chunk, high[1] - chunk},
                chunk < inner_low || chunk + Traits::kChunk > inner_high};
            attend_chunk<Traits>(query, ring + stage * Traits::kStageBytes, mask, scale_log2, sums);
        }
        stage ^= 1;
    }
    // All warps are done with the stages, which now hold the output.
    __syncthreads();
    float inverse[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        float total = sums.total[half];
        total += __shfl_xor_sync(0xffffffffu, total, 1);
        total += __shfl_xor_sync(0xffffffffu, total, 2);
        inverse[half] = total > 0.0f ? 1.0f / total : 0.0f;
        const std::int64_t head = head_of(lane / 4 + 8 * half);
        if (lane % 4 == 0 && head >= 0) {
            params.lse[head] =
                total > 0.0f ? sums.largest[half] * params.scale + logf(total) : 0.0f;
        }
    }
    write_rows<Traits>(sums, inverse, shared + warp * kRows * Traits::kDim * 2, [&](int row) -> T* {
        const std::int64_t head = head_of(row);
        return head < 0 ? nullptr : static_cast<T*>(params.out) + head * Traits::kDim;
    });
}

}  // namespace nsa
