// Latent attention for Hopper: wgmma fed by TMA.
//
// A block works through its segments for 64 rows. One warpgroup produces; two consume, each with
// half of the sums, 64 x 256. They take tiles in pairs, one each: a consumer computes the scores
// and weights of its own tile, adds its own weights times values from registers, then the other's
// from shared memory. The second's maximum follows the first's, so that one's softmax runs under
// the other's products, and the first rescales its weights to the second's maximum before it hands
// them over.
#pragma once

#include <cstdint>

#include "Kernels/device/convert.cuh"
#include "Kernels/device/ptx/grid_dependency.cuh"
#include "Kernels/device/ptx/mma.cuh"
#include "Kernels/device/ptx/named_barrier.cuh"
#include "Kernels/device/ptx/registers.cuh"
#include "Kernels/device/ptx/wgmma.cuh"
#include "Kernels/device/softmax_rows.cuh"
#include "Kernels/mla/hopper/storage.cuh"

namespace mla::hopper {

// Two consumer warpgroups; the third is the producer.
constexpr int kThreads = 3 * 128;
constexpr int kProducerRegisters = 24;
constexpr int kConsumerRegisters = 240;

// Named barriers; 0 is __syncthreads. Those shared by both consumers order weights, which only
// tensor cores read; data that threads read from the other consumer uses mbarriers.
enum NamedBarrier { kFirstWeights = 1, kSecondWeights, kOwn };

// A product's accumulators, as the instruction takes them.
template <int kCount>
__device__ __forceinline__ float (&flat(float (&sums)[kCount][4]))[4 * kCount] {
    return reinterpret_cast<float (&)[4 * kCount]>(sums);
}

template <class T, int kConsumer>
class Consumer {
  public:
    __device__ Consumer(const Arguments& a, Storage& shared, int first_row)
        : a_(a), shared_(shared), first_row_(first_row), lane_(threadIdx.x % 32) {
        row_ = threadIdx.x % 128 / 32 * 16 + lane_ / 4;
        two_rows_ = threadIdx.x % 128 / 4;
        queries_ = ptx::shared_address(shared.queries);
        own_ = ptx::shared_address(shared.cached[kConsumer]);
        other_ = ptx::shared_address(shared.cached[1 - kConsumer]);
    }

    __device__ void run(const Share& share) {
        const int begin = share.begin;
        for (int index = begin; index < share.end; ++index) {
            const Segment segment = share.segment(a_, index);
            attend(segment);
            // As late as the launch can still hide behind the stores: a block's first call counts,
            // and a grid launched while most blocks still work would crowd onto the few SMs that
            // are free.
            if (index + 1 == share.end) ptx::allow_next_grid();
            store(segment, (index - begin) % 2);
        }
    }

  private:
    // Releases a buffer's early or late chunks.
    __device__ __forceinline__ void release(std::uint64_t* barrier) {
        if (lane_ == 0) ptx::mbarrier_arrive(barrier);
    }

    // Products of 64 by 64 read as much shared memory as it gives, so the queries' rope chunk comes
    // from registers.
    __device__ __forceinline__ void load_rope() {
        const int row = threadIdx.x % 128 / 32 * 16 + lane_ % 16;
        const std::uint32_t from = queries_ + kRopeChunk * kChunkBytes + row * 128;
#pragma unroll
        for (int step = 0; step < 4; ++step) {
            const int packet = 2 * step + lane_ / 16;
            ptx::load_matrices(rope_[step], from + ((packet ^ (row & 7)) << 4));
        }
        // All lanes have read before one of them lets the chunk be overwritten.
        __syncwarp();
    }

    __device__ __forceinline__ void make_scores() {
        // Opaque, or the compiler keeps one call's operands for the next and runs out of registers.
        std::uint32_t queries = queries_, keys = own_;
        ptx::hide(queries);
        ptx::hide(keys);
#pragma unroll
        for (int place = 0; place < kChunks; ++place) {
            if (place % kChunksOfGroup == 0) {
                ptx::mbarrier_wait(&shared_.full[kConsumer][place / kChunksOfGroup], parity_);
                ptx::wgmma_fence();
            }
            const std::uint32_t at = chunk_at(kConsumer, place) * kChunkBytes;
#pragma unroll
            for (int depth = 0; depth < 128; depth += 32) {
                if (place == kRopeChunk) {
                    ptx::wgmma<T>(flat(scores_), rope_[depth / 32],
                                  ptx::depth_major_operand(keys + at + depth));
                    continue;
                }
                ptx::wgmma<T>(flat(scores_), ptx::depth_major_operand(queries + at + depth),
                              ptx::depth_major_operand(keys + at + depth), place > 0 || depth > 0);
            }
        }
        ptx::wgmma_commit();
        parity_ ^= 1;
        ptx::wgmma_wait<0>();
        ptx::pin(flat(scores_));
    }

    __device__ __forceinline__ void start_own_sums() {
        const std::uint32_t values = own_ + kConsumer * (4 * kChunkBytes);
        ptx::wgmma_fence();
#pragma unroll
        for (int step = 0; step < 4; ++step) {
            ptx::wgmma_width_major<T>(flat(sums_), weights_[step],
                                      ptx::width_major_operand(values + step * 2048, kChunkBytes));
        }
        ptx::wgmma_commit();
    }

    __device__ __forceinline__ void start_other_sums() {
        const std::uint32_t values = other_ + kConsumer * (4 * kChunkBytes);
        const std::uint32_t weights = other_ + kRopeChunk * kChunkBytes;
        ptx::wgmma_fence();
#pragma unroll
        for (int step = 0; step < 4; ++step) {
            ptx::wgmma_width_major<T>(flat(sums_), ptx::depth_major_operand(weights + step * 32),
                                      ptx::width_major_operand(values + step * 2048, kChunkBytes),
                                      1);
        }
        ptx::wgmma_commit();
    }

    // The rows' largest scores in the tile, in base 2; masked scores become -infinity.
    __device__ __forceinline__ void find_tops(const Segment& segment, int first_token,
                                              float (&top)[2]) {
        if (first_token + 64 > segment.length - a_.q_len + 1) {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const int query = min((first_row_ + row_ + 8 * half) / a_.heads, a_.q_len - 1);
                const int visible = segment.length - a_.q_len + 1 + query - first_token;
#pragma unroll
                for (int eight = 0; eight < 8; ++eight) {
#pragma unroll
                    for (int index = 0; index < 2; ++index) {
                        if (eight * 8 + lane_ % 4 * 2 + index >= visible) {
                            scores_[eight][2 * half + index] = -INFINITY;
                        }
                    }
                }
            }
        }
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            float largest = -INFINITY;
#pragma unroll
            for (auto& four : scores_) {
                largest = fmaxf(largest, fmaxf(four[2 * half], four[2 * half + 1]));
            }
            top[half] = device::largest_of_four_lanes(largest) * a_.scale_log2;
        }
    }

    // Weights as operands of the products with the values, rescaled by each row's factor.
    __device__ __forceinline__ void pack_weights(const float (&factors)[2],
                                                 std::uint32_t (&weights)[4][4]) {
#pragma unroll
        for (int step = 0; step < 4; ++step) {
#pragma unroll
            for (int word = 0; word < 4; ++word) {
                const float* pair = &scores_[2 * step + word / 2][word % 2 * 2];
                weights[step][word] = device::pack_pair(pair[0] * factors[word % 2],
                                                        pair[1] * factors[word % 2], T{});
            }
        }
    }

    // Turns scores into weights, which are added to the totals.
    __device__ __forceinline__ void weigh(const float (&top)[2]) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            // A row that has seen nothing: exp(-inf - -inf) would be NaN.
            const float from = top[half] == -INFINITY ? 0.0f : top[half];
            float total = 0.0f;
#pragma unroll
            for (auto& four : scores_) {
#pragma unroll
                for (int index = 2 * half; index < 2 * half + 2; ++index) {
                    four[index] = ptx::exp2_fast(fmaf(four[index], a_.scale_log2, -from));
                    total += four[index];
                }
            }
            totals_[half] += total;
        }
        const float same[2] = {1.0f, 1.0f};
        pack_weights(same, weights_);
    }

    // Rescales sums and totals to a new maximum.
    __device__ __forceinline__ void shrink_sums(const float (&factors)[2]) {
        totals_[0] *= factors[0];
        totals_[1] *= factors[1];
        if (__any_sync(0xffffffffu, factors[0] != 1.0f || factors[1] != 1.0f)) {
#pragma unroll
            for (auto& four : sums_) {
                four[0] *= factors[0];
                four[1] *= factors[0];
                four[2] *= factors[1];
                four[3] *= factors[1];
            }
        }
    }

    // Overwrites the rope chunk of its own tile.
    __device__ __forceinline__ void store_weights(const std::uint32_t (&weights)[4][4]) {
        const int row = threadIdx.x % 128 / 32 * 16 + lane_ % 16;
        const std::uint32_t to = own_ + kRopeChunk * kChunkBytes + row * 128;
#pragma unroll
        for (int step = 0; step < 4; ++step) {
            const int packet = 2 * step + lane_ / 16;
            ptx::store_matrices(to + ((packet ^ (row & 7)) << 4), weights[step][0],
                                weights[step][1], weights[step][2], weights[step][3]);
        }
    }

    // Hands weights over, rescaled by the rows' factors.
    __device__ __forceinline__ void hand_over(const float (&factors)[2]) {
        if (__any_sync(0xffffffffu, factors[0] != 1.0f || factors[1] != 1.0f)) {
            std::uint32_t shrunk[4][4];
            pack_weights(factors, shrunk);
            store_weights(shrunk);
        } else {
            store_weights(weights_);
        }
        ptx::fence_async_proxy();
    }

    // Zeros the values past the end of the sequence: the pool may hold NaN or infinity there, which
    // a zero weight would not cancel.
    __device__ __forceinline__ void clear_tail(const Segment& segment, int first_token) {
        const int valid = segment.length - first_token;
        if (valid >= 64) return;
        // Other warps' scores may still read them: a warp's wait is not known to cover those.
        ptx::named_barrier_sync(kOwn + kConsumer, 128);
        std::uint8_t* tile = shared_.cached[kConsumer];
        for (int index = threadIdx.x % 128; index < (64 - valid) * 64; index += 128) {
            const int row = valid + index / 64, packet = index % 64;
            *reinterpret_cast<uint4*>(tile + packet / 8 * kChunkBytes + row * 128 +
                                      packet % 8 * 16) = uint4{0, 0, 0, 0};
        }
        ptx::fence_async_proxy();
        ptx::named_barrier_sync(kOwn + kConsumer, 128);
    }

    // Per-row state for the other consumer. Every thread arrives, whether or not it wrote: it has
    // read the previous message, which the other may now overwrite.
    __device__ __forceinline__ void tell(RowExchange& exchange, const float (&values)[2]) {
        if (lane_ % 4 == 0) exchange.values[kConsumer][two_rows_] = {values[0], values[1]};
        ptx::mbarrier_arrive(&exchange.told[kConsumer]);
    }

    __device__ __forceinline__ void hear(RowExchange& exchange, std::uint32_t parity,
                                         float (&values)[2]) {
        ptx::mbarrier_wait(&exchange.told[1 - kConsumer], parity);
        const float2 theirs = exchange.values[1 - kConsumer][two_rows_];
        values[0] = theirs.x;
        values[1] = theirs.y;
    }

    __device__ __forceinline__ void hear_maxima(float (&top)[2]) {
        hear(shared_.maxima, maxima_parity_, top);
        maxima_parity_ ^= 1;
    }

    // The rows' new maxima, and the factors that rescale the earlier sums.
    __device__ __forceinline__ void raise(float (&top)[2], float (&factors)[2]) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            top[half] = fmaxf(top[half], largest_[half]);
            factors[half] =
                largest_[half] == top[half] ? 1.0f : device::shrink(largest_[half], top[half]);
            largest_[half] = top[half];
        }
    }

    // The first consumer's softmax and products.
    __device__ __forceinline__ void first_round(const Segment& segment, int first_token,
                                                bool has_second) {
        float top[2], factors[2];
        find_tops(segment, first_token, top);
        raise(top, factors);
        tell(shared_.maxima, top);
        shrink_sums(factors);
        weigh(top);
        clear_tail(segment, first_token);
        start_own_sums();
        // Before the other's maximum is known, so that the chunks are refilled sooner.
        finish_sums(&shared_.empty[0][0]);
        factors[0] = factors[1] = 1.0f;
        if (has_second) {
            hear_maxima(top);
            raise(top, factors);
        } else {
            // Weights overwrite the rope chunk: every warp's scores must be done, which the
            // exchange of maxima implies.
            ptx::named_barrier_sync(kOwn + kConsumer, 128);
        }
        hand_over(factors);
        ptx::named_barrier_arrive(kFirstWeights, 256);
        if (has_second) {
            shrink_sums(factors);
            ptx::named_barrier_sync(kSecondWeights, 256);
            start_other_sums();
            finish_sums(&shared_.empty[1][1]);
        }
    }

    // The second consumer's.
    __device__ __forceinline__ void second_round(const Segment& segment, int first_token) {
        float top[2], first[2], factors[2];
        find_tops(segment, first_token, top);
        hear_maxima(first);
        top[0] = fmaxf(top[0], first[0]);
        top[1] = fmaxf(top[1], first[1]);
        raise(top, factors);
        tell(shared_.maxima, top);
        shrink_sums(factors);
        weigh(top);
        clear_tail(segment, first_token);
        start_own_sums();
        const float same[2] = {1.0f, 1.0f};
        // Weights overwrite the rope chunk: a warp's wait is not known to cover the others' scores.
        ptx::named_barrier_sync(kOwn + kConsumer, 128);
        hand_over(same);
        ptx::named_barrier_arrive(kSecondWeights, 256);
        ptx::named_barrier_sync(kFirstWeights, 256);
        start_other_sums();
        ptx::wgmma_wait<1>();
        release(&shared_.empty[1][0]);
        finish_sums(&shared_.empty[0][1]);
    }

    // The second consumer's part in a round in which it has no tile.
    __device__ __forceinline__ void add_first_alone() {
        float top[2], factors[2];
        hear_maxima(top);
        raise(top, factors);
        shrink_sums(factors);
        ptx::named_barrier_sync(kFirstWeights, 256);
        start_other_sums();
        finish_sums(&shared_.empty[0][1]);
    }

    // Releases chunks before waiting for the next scores, so that they are refilled sooner.
    __device__ __forceinline__ void finish_sums(std::uint64_t* barrier) {
        ptx::wgmma_wait<0>();
        ptx::pin(flat(sums_));
        release(barrier);
    }

    __device__ __forceinline__ void attend(const Segment& segment) {
        largest_[0] = largest_[1] = -INFINITY;
        totals_[0] = totals_[1] = 0.0f;
#pragma unroll
        for (auto& four : sums_) four[0] = four[1] = four[2] = four[3] = 0.0f;
        const int tiles = segment.tile_end - segment.tile_begin;
        if (tiles <= 0) return;
        ptx::mbarrier_wait(&shared_.queries_full, queries_parity_);
        queries_parity_ ^= 1;
        const int mine = (tiles + 1 - kConsumer) / 2;
        if (mine > 0) load_rope();
        int first_token = (segment.tile_begin + kConsumer) * 64;
        for (int round = 0; round < mine; ++round) {
            make_scores();
            if (round + 1 == mine) release(&shared_.queries_empty);
            if constexpr (kConsumer == 0) {
                first_round(segment, first_token, 2 * round + 1 < tiles);
            } else {
                second_round(segment, first_token);
            }
            first_token += 128;
        }
        if (kConsumer == 0 || tiles % 2 == 0) return;
        if (mine == 0) release(&shared_.queries_empty);
        add_first_alone();
    }

    // Epilogue: stores the block's result, or an fp32 part.
    __device__ __forceinline__ void store(const Segment& segment, int turn) {
        float theirs[2];
        totals_[0] = device::sum_of_four_lanes(totals_[0]);
        totals_[1] = device::sum_of_four_lanes(totals_[1]);
        tell(shared_.totals[turn], totals_);
        hear(shared_.totals[turn], totals_parity_ >> turn & 1, theirs);
        totals_parity_ ^= 1 << turn;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int in_block = row_ + 8 * half;
            const int row = first_row_ + in_block;
            const bool valid = row < a_.rows;
            const float total = totals_[half] + theirs[half];
            if (segment.slot < 0) {
                // In whole packets, which four lanes exchange.
                auto* out = reinterpret_cast<uint4*>(
                    static_cast<T*>(a_.out) + query_row(a_, segment.sequence, row) * kLatent +
                    kConsumer * 256 + lane_ % 4 * 8);
                const float scale = total > 0.0f ? 1.0f / total : 0.0f;
#pragma unroll
                for (int eight = 0; eight < 32; eight += 4) {
                    std::uint32_t words[4];
#pragma unroll
                    for (int word = 0; word < 4; ++word) {
                        const float* pair = &sums_[eight + word][2 * half];
                        words[word] = device::pack_pair(pair[0] * scale, pair[1] * scale, T{});
                    }
                    device::transpose_quad(words);
                    if (valid) out[eight] = {words[0], words[1], words[2], words[3]};
                }
            } else if (valid) {
                const std::int64_t at =
                    static_cast<std::int64_t>(segment.slot) * a_.row_blocks * 64 + row;
                float* part =
                    a_.workspace.partials + at * kLatent + kConsumer * 256 + lane_ % 4 * 2;
#pragma unroll
                for (int eight = 0; eight < 32; ++eight) {
                    const float* pair = &sums_[eight][2 * half];
                    *reinterpret_cast<float2*>(part + eight * 8) = {pair[0], pair[1]};
                }
                if (kConsumer == 0 && lane_ % 4 == 0) {
                    a_.workspace.maxima[at] = {largest_[half], total};
                }
            }
        }
    }

    const Arguments& a_;
    Storage& shared_;
    const int first_row_;
    const int lane_;
    // This lane's first row in the block; the other is 8 further.
    int row_;
    // Index of the two rows among the block's pairs of rows.
    int two_rows_;
    std::uint32_t queries_, own_, other_;
    std::uint32_t queries_parity_ = 0;
    std::uint32_t parity_ = 0;
    std::uint32_t maxima_parity_ = 0;
    // One bit per slot of totals.
    std::uint32_t totals_parity_ = 0;
    float sums_[32][4];
    float scores_[8][4];
    std::uint32_t weights_[4][4];
    std::uint32_t rope_[4][4];
    float largest_[2];
    // Over this consumer's tiles only.
    float totals_[2];
};

template <class T>
__global__ void __launch_bounds__(kThreads, 1)
    mla_kernel(const __grid_constant__ Arguments a, const __grid_constant__ Maps maps) {
    extern __shared__ __align__(1024) std::uint8_t raw[];
    auto& shared = *reinterpret_cast<Storage*>(raw);
    const int row_block = blockIdx.x % a.row_blocks;
    const Share share(a, blockIdx.x / a.row_blocks);
    if (threadIdx.x == kThreads - 1) {
        ptx::prefetch_map(maps.q);
        ptx::prefetch_map(maps.cache);
    }
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(&shared.queries_full, kFetchingWarps);
        ptx::mbarrier_init(&shared.queries_empty, 8);
        for (RowExchange* exchange : {&shared.maxima, &shared.totals[0], &shared.totals[1]}) {
            for (std::uint64_t& told : exchange->told) ptx::mbarrier_init(&told, 128);
        }
        for (int buffer = 0; buffer < 2; ++buffer) {
            // The last group is a single chunk.
            for (int group = 0; group < kGroups; ++group) {
                ptx::mbarrier_init(&shared.full[buffer][group],
                                   group == kGroups - 1 ? kBoxes : kFetchingWarps);
            }
            for (std::uint64_t& empty : shared.empty[buffer]) {
                ptx::mbarrier_init(&empty, 4);
            }
        }
        ptx::fence_mbarrier_init();
    }
    // Makes the initialised barriers visible before their first use.
    __syncthreads();
    if (threadIdx.x >= 256) {
        ptx::decrease_registers<kProducerRegisters>();
        Producer(a, maps, shared).run(share, row_block);
    } else {
        ptx::increase_registers<kConsumerRegisters>();
        if (threadIdx.x < 128) {
            Consumer<T, 0>(a, shared, row_block * 64).run(share);
        } else {
            Consumer<T, 1>(a, shared, row_block * 64).run(share);
        }
    }
}

}  // namespace mla::hopper
