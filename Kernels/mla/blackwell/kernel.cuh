// Latent attention for Blackwell: tcgen05 fed by TMA, scores and sums in tensor memory.
//
// A pair of blocks works through its segments for 128 rows, 64 in each block: with one block, sums
// of 128 rows would leave no tensor memory for scores. One warp per block copies. One thread of the
// even block multiplies for both: scores = queries . keys^T, with half of a tile's tokens from each
// block, and sums += weights . values, with half of the columns from each. A warpgroup per block
// turns scores into weights, which go to shared memory.
//
// The scores of the next tile come before the sums of this one, so that a softmax runs under
// products. Products complete in order:
//
//   products   scores 0 | scores 1 | sums 0 | scores 2 | sums 1 | ...
//   softmax             | 0        | 1 ............... | 2 ...
//
// Of an FP8 cache codes are copied, and a warpgroup per block converts them to the queries' type.
//
// When a tile's softmax knows that the sums of the tile before are complete, it may rescale them,
// and write its weights over the last ones.
//
// Who waits for whom, across the pair:
//   queries_full, full[stage]    bytes arrive, or are converted      -> products
//   queries_empty, empty[stage]  products have read                  -> copies, or conversion
//   codes_full[stage]            bytes of this block arrive          -> conversion
//   codes_empty[stage]           codes are in registers              -> copies
//   scores_full[step % 2]        scores are complete                 -> softmax
//   weights_full                 weights are stored, scores are read -> products
//   sums_full                    sums are complete, weights are read -> softmax
#pragma once

#include <cstdint>

#include "Kernels/device/ptx/cluster.cuh"
#include "Kernels/device/ptx/grid_dependency.cuh"
#include "Kernels/device/ptx/mbarrier.cuh"
#include "Kernels/device/ptx/tcgen05.cuh"
#include "Kernels/mla/blackwell/convert.cuh"
#include "Kernels/mla/blackwell/copy.cuh"
#include "Kernels/mla/blackwell/softmax.cuh"
#include "Kernels/mla/blackwell/storage.cuh"

namespace mla::blackwell {

template <class T, int kCacheBytes>
class Multiplier {
    using Memory = Storage<kCacheBytes>;

  public:
    __device__ Multiplier(const Arguments& a, const Work& work, Memory& shared)
        : a_(a), work_(work), shared_(shared), tensor_memory_(shared.tensor_memory) {}

    __device__ void run() {
        for (int index = work_.begin; index < work_.end; ++index) {
            const int tiles = tiles_of(a_.workspace.segments[index]);
            if (tiles == 0) continue;
            wait(&shared_.queries_full, queries_turn_++);
            for (int tile = 0; tile <= tiles; ++tile) {
                if (tile < tiles) make_scores(step_ + tile);
                if (tile + 1 == tiles) ptx::tensor_commit<kBlocks>(&shared_.queries_empty);
                if (tile > 0) make_sums(step_ + tile - 1, tile > 1);
            }
            step_ += tiles;
        }
    }

  private:
    // Calls `multiply` with the address of the next stage.
    template <class Body>
    __device__ __forceinline__ void with_stage(Body multiply) {
        const int stage = ring_.stage();
        wait(&shared_.full[stage], ring_.parity());
        ++ring_.count;
        ptx::tensor_fence_after_sync();
        multiply(ptx::shared_address(shared_.stages[stage]));
        ptx::tensor_commit<kBlocks>(&shared_.empty[stage]);
    }

    __device__ __forceinline__ void make_scores(unsigned step) {
        constexpr std::uint32_t kProduct = ptx::tensor_product<T>(kRows, kTokens);
        const std::uint32_t scores = tensor_memory_ + scores_at(step);
        for (int first = 0; first < kChunks; first += kStageChunks) {
            with_stage([&](std::uint32_t keys) {
                for (int chunk = first; chunk < min(first + kStageChunks, kChunks); ++chunk) {
                    const std::uint64_t a =
                        ptx::tensor_operand(ptx::shared_address(shared_.queries[chunk]));
                    const std::uint64_t b =
                        ptx::tensor_operand(keys + (chunk - first) * kChunkBytes);
#pragma unroll
                    for (int part = 0; part < 4; ++part) {
                        ptx::tensor_multiply<T, kBlocks>(scores, a + 2 * part, b + 2 * part,
                                                         kProduct, chunk > 0 || part > 0);
                    }
                }
            });
        }
        ptx::tensor_commit<kBlocks>(&shared_.scores_full[step % 2]);
    }

    __device__ __forceinline__ void make_sums(unsigned step, bool add) {
        constexpr std::uint32_t kProduct =
            ptx::tensor_product<T>(kRows, kSumColumns) | ptx::kWidthMajorB;
        wait(&shared_.weights_full, step);
        ptx::tensor_fence_after_sync();
        for (int half = 0; half < 2; ++half) {
            const std::uint64_t a = ptx::tensor_operand(ptx::shared_address(shared_.weights[half]));
            for (int columns = 0; columns < kSumParts; ++columns) {
                with_stage([&](std::uint32_t values) {
                    const std::uint64_t b = ptx::tensor_width_major_operand(values, kChunkBytes);
#pragma unroll
                    for (int part = 0; part < 4; ++part) {
                        ptx::tensor_multiply<T, kBlocks>(tensor_memory_ + sums_at(columns),
                                                         a + 2 * part, b + part * (2048 / 16),
                                                         kProduct, add || half > 0 || part > 0);
                    }
                });
            }
        }
        ptx::tensor_commit<kBlocks>(&shared_.sums_full);
    }

    const Arguments& a_;
    const Work work_;
    Memory& shared_;
    const std::uint32_t tensor_memory_;
    Ring<Memory::kStages> ring_;
    unsigned queries_turn_ = 0;
    unsigned step_ = 0;
};

// All threads of the pair.
__device__ __forceinline__ void synchronize() {
    ptx::tensor_fence_before_sync();
    ptx::cluster_arrive();
    ptx::cluster_wait();
    ptx::tensor_fence_after_sync();
}

template <class T, int kCacheBytes>
__global__ void __launch_bounds__(threads_of(kCacheBytes), 1)
    mla_kernel(const __grid_constant__ Arguments a, const __grid_constant__ Maps maps) {
    extern __shared__ std::uint8_t raw[];
    const unsigned start = -ptx::shared_address(raw) % 1024;
    using Memory = Storage<kCacheBytes>;
    auto& shared = *reinterpret_cast<Memory*>(raw + start);
    const int warp = __shfl_sync(~0u, threadIdx.x / 32, 0);
    const bool first_lane = threadIdx.x % 32 == 0;
    const int pair = blockIdx.x / kBlocks;
    const int share = pair / a.row_blocks;
    const Work work = {a.workspace.share_begin[share], a.workspace.share_begin[share + 1],
                       static_cast<int>(ptx::cluster_rank()), pair % a.row_blocks * kRows};
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(&shared.queries_full, 1);
        ptx::mbarrier_init(&shared.queries_empty, 1);
        for (int stage = 0; stage < Memory::kStages; ++stage) {
            // Every converter of both blocks.
            constexpr int kArrivals = Memory::kFp8 ? kBlocks * kConverterThreads / 32 : 1;
            ptx::mbarrier_init(&shared.full[stage], kArrivals);
            ptx::mbarrier_init(&shared.empty[stage], 1);
        }
        if constexpr (Memory::kFp8) {
            for (int stage = 0; stage < kCodeStages; ++stage) {
                ptx::mbarrier_init(&shared.codes_full[stage], 1);
                ptx::mbarrier_init(&shared.codes_empty[stage], kConverterThreads / 32);
            }
        }
        for (std::uint64_t& full : shared.scores_full) ptx::mbarrier_init(&full, 1);
        // Every warp of both warpgroups.
        ptx::mbarrier_init(&shared.weights_full, kBlocks * kSoftmaxThreads / 32);
        ptx::mbarrier_init(&shared.sums_full, 1);
        ptx::fence_mbarrier_init();
    }
    if (warp == 2) {
        ptx::tensor_memory_allocate<kBlocks>(&shared.tensor_memory, kTensorColumns);
        ptx::tensor_memory_relinquish<kBlocks>();
    }
    synchronize();  // barriers and the address are visible to all
    const std::uint32_t tensor_memory = shared.tensor_memory;
    if (warp == 0) {
        Copier<kCacheBytes>(a, maps, work, shared).run();
    } else if (warp == 1) {
        if (first_lane && work.rank == 0) Multiplier<T, kCacheBytes>(a, work, shared).run();
        __syncwarp();
    } else if (warp >= 8) {
        if constexpr (Memory::kFp8) Converter<T>(a, work, shared).run();
    } else if (warp >= 4) {
        Softmax<T, kCacheBytes>(a, work, shared).run();
        // Only these trigger it: a block's first call counts, and a grid launched while most blocks
        // still work would crowd onto the few SMs that are free.
        ptx::allow_next_grid();
    }
    synchronize();  // nobody uses tensor memory or the other block's barriers any more
    if (warp == 2) ptx::tensor_memory_free<kBlocks>(tensor_memory, kTensorColumns);
}

}  // namespace mla::blackwell
