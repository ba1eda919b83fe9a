// Latent attention with mma.sync, on every architecture.
//
// A block works through its segments: runs of tiles of one sequence, for some rows (queries times
// heads). A tile of tokens, latent and rope side by side, is copied to shared memory once and used
// twice: as keys, and its latent part as values. Warps form a grid of kWarpRows x kWarpColumns: for
// the scores a warp takes its rows and its share of the tokens, for the sums its rows and its share
// of the latent dimension. In between, weights are exchanged through shared memory.
//
// Blocks with the same tokens and different rows run side by side, so that the second reads from
// L2.
#pragma once

#include "Kernels/device/ptx/grid_dependency.cuh"
#include "Kernels/mla/portable/products.cuh"

namespace mla::portable {

__device__ __forceinline__ void store_run(float* to, const float (&sums)[2]) {
    *reinterpret_cast<float2*>(to) = {sums[0], sums[1]};
}
__device__ __forceinline__ void store_run(float* to, const float (&sums)[4]) {
    *reinterpret_cast<float4*>(to) = {sums[0], sums[1], sums[2], sums[3]};
}
template <class T>
__device__ __forceinline__ void store_run(T* to, const float (&sums)[2]) {
    *reinterpret_cast<std::uint32_t*>(to) = device::pack_pair(sums[0], sums[1], T{});
}
template <class T>
__device__ __forceinline__ void store_run(T* to, const float (&sums)[4]) {
    *reinterpret_cast<uint2*>(to) = {device::pack_pair(sums[0], sums[1], T{}),
                                     device::pack_pair(sums[2], sums[3], T{})};
}

// Epilogue: stores the block's result, or an fp32 part.
template <class Tr>
__device__ void store(const Arguments& a, SharedStorage<Tr>& shared, const Segment& segment,
                      int first_row, Softmax<Tr>& softmax) {
    const int lane = threadIdx.x % 32;
    const int column = Tr::warp_column();
    // Everyone has read the last tile's maxima before totals overwrite them.
    __syncthreads();
#pragma unroll
    for (int tile = 0; tile < Tr::kRowTiles; ++tile) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const float total = device::sum_of_four_lanes(softmax.total[tile][half]);
            if (lane % 4 == 0) {
                shared.exchange[Softmax<Tr>::row_in_block(tile, half)][column] = total;
            }
        }
    }
    // All warps' totals are written before they are added.
    __syncthreads();
#pragma unroll
    for (int tile = 0; tile < Tr::kRowTiles; ++tile) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int in_block = Softmax<Tr>::row_in_block(tile, half);
            const int row = first_row + in_block;
            if (row >= a.rows) continue;
            float total = 0.0f;
#pragma unroll
            for (int other = 0; other < Tr::kWarpColumns; ++other) {
                total += shared.exchange[in_block][other];
            }
            // A lane's dimensions that follow each other.
            constexpr int kRun = Tr::kFp8 ? 4 : 2;
            const int first_dim = column * Tr::kWarpDims + lane % 4 * kRun;
            if (segment.slot < 0) {
                auto* out = static_cast<typename Tr::T*>(a.out) +
                            query_row(a, segment.sequence, row) * kLatent + first_dim;
                const float scale = a.value_scale / total;
#pragma unroll
                for (int run = 0; run < Tr::kWarpDims / 4 / kRun; ++run) {
                    float sums[kRun];
                    softmax.run_of(tile, half, run, sums);
#pragma unroll
                    for (float& sum : sums) sum = total > 0.0f ? sum * scale : 0.0f;
                    store_run(out + run * (4 * kRun), sums);
                }
            } else {
                const std::int64_t at =
                    (static_cast<std::int64_t>(segment.slot) * a.row_blocks) * Tr::kRows + row;
                float* part = a.workspace.partials + at * kLatent + first_dim;
#pragma unroll
                for (int run = 0; run < Tr::kWarpDims / 4 / kRun; ++run) {
                    float sums[kRun];
                    softmax.run_of(tile, half, run, sums);
                    store_run(part + run * (4 * kRun), sums);
                }
                if (column == 0 && lane % 4 == 0) {
                    a.workspace.maxima[at] = {softmax.largest[tile][half], total};
                }
            }
        }
    }
}

// The tile is visible to all threads, whoever copied it, and the stage before it is free.
template <class Tr>
__device__ __forceinline__ void await_tile() {
    ptx::wait_for_copies<Tr::kStages - 2>();
    // All threads' copies have arrived, and all are done with the stage about to be refilled.
    __syncthreads();
}

// All tiles of a segment in order; `stage` is the first one's.
template <class Tr>
__device__ __forceinline__ void multiply_segment(const Arguments& a, SharedStorage<Tr>& shared,
                                                 Loader<Tr>& loader, const Segment& segment,
                                                 const Queries<Tr>& queries, Softmax<Tr>& softmax,
                                                 int& stage) {
    const std::uint32_t ring = ptx::shared_address(shared.ring);
    const std::uint32_t weights = ptx::shared_address(shared.weights);
    // From here on some row does not see every token.
    const int first_hidden = segment.length - a.q_len + 1;
    for (int tile = segment.tile_begin; tile < segment.tile_end; ++tile) {
        await_tile<Tr>();
        loader.copy_next();
        const std::uint32_t cached = ring + stage * (Tr::kTokens * Tr::kRowBytes);
        Scores<Tr> scores;
        multiply_keys<Tr>(queries, cached, scores, a.scale_log2);
        const int first_token = tile * Tr::kTokens;
        if (first_token + Tr::kTokens > first_hidden) mask<Tr>(scores, softmax, first_token);
        weigh<Tr>(shared, scores, softmax);
        multiply_values<Tr>(weights, cached, softmax);
        stage = stage + 1 == Tr::kStages ? 0 : stage + 1;
    }
}

template <class Tr>
__global__ void __launch_bounds__(Tr::kThreads, Tr::kBlocks)
    mla_kernel(const __grid_constant__ Arguments a) {
    extern __shared__ __align__(1024) std::uint8_t raw[];
    auto& shared = *reinterpret_cast<SharedStorage<Tr>*>(raw);
    const int share = blockIdx.x / a.row_blocks;
    const int first_row = blockIdx.x % a.row_blocks * Tr::kRows;
    const int begin = a.workspace.share_begin[share];
    const int end = a.workspace.share_begin[share + 1];

    Loader<Tr> loader(a, ptx::shared_address(shared.ring), begin, end);
#pragma unroll
    for (int stage = 0; stage + 1 < Tr::kStages; ++stage) loader.copy_next();
    int stage = 0;
    for (int index = begin; index < end; ++index) {
        const Segment segment = a.workspace.segments[index];
        Queries<Tr> queries;
        queries.load(a, shared, segment.sequence, first_row);
        Softmax<Tr> softmax;
        softmax.start(a, segment, first_row);
        multiply_segment<Tr>(a, shared, loader, segment, queries, softmax, stage);
        store<Tr>(a, shared, segment, first_row, softmax);
    }
    ptx::wait_for_copies<0>();
    ptx::allow_next_grid();
}

}  // namespace mla::portable
