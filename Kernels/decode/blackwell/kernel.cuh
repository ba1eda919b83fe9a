// Decode for Blackwell: tcgen05 fed by TMA, scores and sums in tensor memory.
//
// Products are swapped: scores^T = keys . queries^T, sums^T = values^T . weights^T, so that the
// 128 tokens of a tile are the instruction's 128 rows, and the query rows that share a KV head, the
// group's heads times the new tokens, its columns: 16, 32 or 64. Query rows as rows would leave 112
// of 128 empty for a group of 16 and more for smaller ones: eight times the tensor cores' work,
// nearly as long as reading FP8 takes. Above all the softmax would have a thread per query row,
// with 128 exponentials one after the other, and the others idle; here every thread has one token.
//
// One block per SM works through its segments, runs of tiles of one sequence and KV head. One warp
// copies pages, one loads queries, one thread multiplies, a warpgroup turns scores into weights.
// The scores of the next tile come before the sums of this one, across segments, so that a softmax
// runs under products and memory is never idle. Products complete in order:
//
//   products   scores 0 | scores 1 | sums 0 | scores 2 | sums 1 | ...
//   softmax             | 0        | 1 ............... | 2 ...
//
// Whoever sees the scores of a tile knows that the sums of the last but one are complete.
//
// Who waits for whom:
//   full[stage]           bytes arrive                          -> products
//   empty[stage]          products have read                    -> copies
//   queries_full[slot]    queries are stored                    -> products; over FP8, softmax
//   queries_empty[slot]   products, over FP8 softmax, have read -> queries
//   scores_full[step % 2] scores are complete                   -> softmax
//   weights_full[step % 2] weights are stored, scores are read  -> products
//   sums_full[step % 2]   sums are complete                     -> softmax, to rescale or store
//   received_full         all blocks' sums have arrived         -> merge in a cluster
#pragma once

#include <cstdint>

#include "Kernels/decode/blackwell/copy.cuh"
#include "Kernels/decode/blackwell/results.cuh"
#include "Kernels/decode/blackwell/softmax.cuh"
#include "Kernels/decode/blackwell/storage.cuh"
#include "Kernels/device/ptx/cluster.cuh"
#include "Kernels/device/ptx/mbarrier.cuh"
#include "Kernels/device/ptx/tcgen05.cuh"
#include "Kernels/device/ptx/tensor_columns.cuh"

namespace decode::blackwell {

template <class Tr>
class Multiplier {
    using Operand = typename Tr::Operand;

  public:
    __device__ Multiplier(const Arguments& a, Storage<Tr>& shared)
        : a_(a), shared_(shared), tensor_memory_(shared.tensor_memory) {}

    __device__ void run(const Work& work) {
        bool adds = false;
        for_each_segment(a_, work, [&](const Segment& segment) {
            if (segment.tile_begin >= segment.tile_end) return;
            ptx::mbarrier_wait(&shared_.queries_full[slot_.stage], slot_.parity);
            for (int tile = segment.tile_begin; tile < segment.tile_end; ++tile) {
                make_scores();
                if (tile + 1 == segment.tile_end) {
                    ptx::tensor_commit<1>(&shared_.queries_empty[slot_.stage]);
                }
                if (step_ > 0) make_sums(step_ - 1, adds);
                adds = tile > segment.tile_begin;
                ++step_;
            }
            slot_.advance();
        });
        if (step_ > 0) make_sums(step_ - 1, adds);
    }

  private:
    // Calls `multiply` with the address of the next stage.
    template <class Body>
    __device__ __forceinline__ void with_stage(Body multiply) {
        const int stage = ring_.stage;
        ptx::mbarrier_wait(&shared_.full[stage], ring_.parity);
        ring_.advance();
        multiply(ptx::shared_address(shared_.ring[stage]));
        ptx::tensor_commit<1>(&shared_.empty[stage]);
    }

    __device__ __forceinline__ void make_scores() {
        constexpr std::uint32_t kProduct = ptx::tensor_product<Operand>(kTokens, Tr::kColumns);
        const std::uint32_t scores = tensor_memory_ + Softmax<Tr>::scores_at(step_);
        const std::uint64_t queries = ptx::tensor_core_matrix_operand(
            ptx::shared_address(shared_.queries[slot_.stage]), Tr::kColumns);
#pragma unroll
        for (int part = 0; part < Tr::kParts; ++part) {
            with_stage([&](std::uint32_t keys) {
#pragma unroll
                for (int step = 0; step < Tr::kPartBytes / 32; ++step) {
                    constexpr int kSteps = Tr::kSpan / 32;
                    const std::uint64_t a = ptx::tensor_rows_operand(
                        keys + step / kSteps * Tr::kChunkBytes, Tr::kSpan, 16);
                    const int all = part * (Tr::kPartBytes / 32) + step;
                    ptx::tensor_multiply<Operand, 1>(scores, a + step % kSteps * 2,
                                                     queries + all * (2 * Tr::kColumns), kProduct,
                                                     all > 0);
                }
            });
        }
        ptx::tensor_commit<1>(&shared_.scores_full[step_ % 2]);
    }

    __device__ __forceinline__ void make_sums(unsigned tile, bool add) {
        constexpr std::uint32_t kProduct =
            ptx::tensor_product<Operand>(Tr::kPartDim, Tr::kColumns) | ptx::kHeightMajorA |
            ptx::kWidthMajorB;
        const std::uint64_t weights = ptx::tensor_packets_operand(
            ptx::shared_address(shared_.weights[tile % 2]), kTokens * 16);
        ptx::mbarrier_wait(&shared_.weights_full[tile % 2], tile / 2 & 1);
        ptx::tensor_fence_after_sync();
#pragma unroll
        for (int part = 0; part < Tr::kParts; ++part) {
            with_stage([&](std::uint32_t values) {
                const std::uint64_t a =
                    ptx::tensor_rows_operand(values, Tr::kSpan, Tr::kChunkBytes);
#pragma unroll
                for (int step = 0; step < kTokens / Tr::kDepth; ++step) {
                    ptx::tensor_multiply<Operand, 1>(tensor_memory_ + Softmax<Tr>::sums_at(part),
                                                     a + step * (Tr::kDepth * Tr::kSpan / 16),
                                                     weights + step * Tr::kDepth, kProduct,
                                                     add || step > 0);
                }
            });
        }
        ptx::tensor_commit<1>(&shared_.sums_full[tile % 2]);
    }

    const Arguments& a_;
    Storage<Tr>& shared_;
    const std::uint32_t tensor_memory_;
    Ring<Tr::kStages> ring_;
    Ring<Tr::kSlots> slot_;
    unsigned step_ = 0;
};

template <class Tr>
__device__ __forceinline__ void init_barriers(Storage<Tr>& shared, int cluster_blocks) {
    for (int stage = 0; stage < Tr::kStages; ++stage) {
        ptx::mbarrier_init(&shared.full[stage], 1);
        ptx::mbarrier_init(&shared.empty[stage], 1);
    }
    for (int slot = 0; slot < Tr::kSlots; ++slot) {
        ptx::mbarrier_init(&shared.queries_full[slot], 1);
        ptx::mbarrier_init(&shared.queries_empty[slot], Tr::kFp8 ? 1 + kSoftmaxWarps : 1);
    }
    for (int buffer = 0; buffer < 2; ++buffer) {
        ptx::mbarrier_init(&shared.scores_full[buffer], 1);
        ptx::mbarrier_init(&shared.weights_full[buffer], kSoftmaxWarps);
        ptx::mbarrier_init(&shared.sums_full[buffer], 1);
    }
    ptx::mbarrier_init(&shared.received_full, 1);
    ptx::fence_mbarrier_init();
    if (cluster_blocks > 1) {
        ptx::mbarrier_expect_bytes(&shared.received_full,
                                   Results<Tr>::bytes_received(cluster_blocks));
    }
}

template <class Tr>
__global__ void __launch_bounds__(kThreads, 1)
    decode_kernel(const __grid_constant__ Arguments a, const __grid_constant__ Cache cache) {
    extern __shared__ std::uint8_t raw[];
    auto& shared = *reinterpret_cast<Storage<Tr>*>(raw + -ptx::shared_address(raw) % 1024);
    const int warp = __shfl_sync(~0u, threadIdx.x / 32, 0);
    const Work work(a, cache.cluster_blocks);
    if (threadIdx.x == 0) init_barriers(shared, cache.cluster_blocks);
    if (warp == 2) {
        ptx::tensor_memory_allocate<1>(&shared.tensor_memory, Tr::kTensorColumns);
        ptx::tensor_memory_relinquish<1>();
    }
    // Barriers are visible to all blocks of the cluster, and the address to this one.
    ptx::tensor_fence_before_sync();
    ptx::cluster_arrive();
    ptx::cluster_wait();
    ptx::tensor_fence_after_sync();
    if (warp == 0) {
        Copier<Tr>(a, cache, shared).run(work);
    } else if (warp == 1) {
        if (threadIdx.x % 32 == 0) Multiplier<Tr>(a, shared).run(work);
        __syncwarp();
    } else if (warp == 3) {
        QueryLoader<Tr>(a, shared).run(work);
    } else if (warp >= 4) {
        Softmax<Tr> softmax(a, work, shared);
        Results<Tr> results(a, work, cache.cluster_blocks, shared);
        softmax.run(work, [&](const Segment& segment) { results.store(segment, softmax); });
    }
    ptx::tensor_fence_before_sync();
    __syncthreads();  // nobody uses tensor memory any more
    if (warp == 2) ptx::tensor_memory_free<1>(shared.tensor_memory, Tr::kTensorColumns);
}

}  // namespace decode::blackwell
