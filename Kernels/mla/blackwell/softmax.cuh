// Softmax and results of Blackwell's latent-attention kernel: a warpgroup per block. Two threads
// share a row, because tensor memory has its first columns in lane r and the others in lane r + 64:
// of the scores each has half of the tokens, of the sums half of the columns.
#pragma once

#include <cstdint>

#include "Kernels/device/convert.cuh"
#include "Kernels/device/ptx/cluster.cuh"
#include "Kernels/device/ptx/math.cuh"
#include "Kernels/device/ptx/memory.cuh"
#include "Kernels/device/ptx/named_barrier.cuh"
#include "Kernels/device/ptx/packed.cuh"
#include "Kernels/device/ptx/registers.cuh"
#include "Kernels/device/ptx/tcgen05.cuh"
#include "Kernels/device/softmax_rows.cuh"
#include "Kernels/mla/blackwell/storage.cuh"

namespace mla::blackwell {

// How far the running maximum may lag, as a power of two: weights stay below 2^8, which both types
// can hold, and the sums are almost never rescaled.
constexpr float kLag = 8.0f;
// Barrier 0 is __syncthreads.
constexpr std::uint32_t kSoftmaxBarrier = 1;
constexpr int kThreadTokens = kTokens / 2;

// 32 columns, complete on return.
__device__ __forceinline__ void load_columns(std::uint32_t address, float* values) {
    std::uint32_t words[32];
    ptx::tensor_load(words, address);
    ptx::tensor_wait_for_loads();
    ptx::pin(words);
#pragma unroll
    for (int i = 0; i < 32; ++i) values[i] = __uint_as_float(words[i]);
}

template <class T, int kCacheBytes>
class Softmax {
    using Memory = Storage<kCacheBytes>;

  public:
    __device__ Softmax(const Arguments& a, const Work& work, Memory& shared)
        : a_(a),
          work_(work),
          shared_(shared),
          thread_(threadIdx.x % kSoftmaxThreads),
          half_(thread_ / kBlockRows),
          row_(work.first_row + work.rank * kBlockRows + thread_ % kBlockRows),
          lanes_(shared.tensor_memory + (static_cast<std::uint32_t>(thread_ / 32 * 32) << 16)) {}

    __device__ void run() {
        for (int index = work_.begin; index < work_.end; ++index) {
            const Segment segment = a_.workspace.segments[index];
            attend(segment);
            store(segment);
        }
    }

  private:
    // The value that the row's other thread passes in the same turn.
    __device__ __forceinline__ float exchange(float value) {
        float (&told)[kSoftmaxThreads] = shared_.told[turn_++ % 2];
        told[thread_] = value;
        // Orders this turn's values before their reads, and the reads of the turn before, of the
        // other buffer, before its next values.
        ptx::named_barrier_sync(kSoftmaxBarrier, kSoftmaxThreads);
        return told[thread_ ^ kBlockRows];
    }

    __device__ void attend(const Segment& segment) {
        largest_ = -INFINITY;
        total_ = 0.0f;
        const int tiles = tiles_of(segment);
        const int query = min(row_ / a_.heads, a_.q_len - 1);
        // Tokens that the row sees from the thread's part of a tile on.
        int visible = segment.length - a_.q_len + 1 + query - segment.tile_begin * kTokens -
                      half_ * kThreadTokens;
        for (int tile = 0; tile < tiles; ++tile, ++step_, visible -= kTokens) {
            wait(&shared_.scores_full[step_ % 2], step_ / 2);
            ptx::tensor_fence_after_sync();
            std::uint32_t weights[kThreadTokens / 2];
            const float factor = weigh(visible, weights);
            if (tile > 0) {
                // The products before have read the last weights, and added to the sums.
                wait(&shared_.sums_full, step_ - 1);
                ptx::tensor_fence_after_sync();
                if (__any_sync(~0u, factor != 1.0f)) rescale(factor);
            }
            store_weights(weights);
            // Products may read the weights, and write over the scores.
            ptx::fence_async_proxy();
            ptx::tensor_fence_before_sync();
            __syncwarp();
            if (thread_ % 32 == 0) {
                ptx::mbarrier_arrive_at(ptx::peer_address(&shared_.weights_full, 0));
            }
        }
        if (tiles == 0) return;
        wait(&shared_.sums_full, step_ - 1);
        ptx::tensor_fence_after_sync();
    }

    // Turns the scores of a tile into weights; returns what the earlier sums are to be scaled by.
    __device__ __forceinline__ float weigh(int visible,
                                           std::uint32_t (&weights)[kThreadTokens / 2]) {
        float scores[kThreadTokens];
        load_columns(lanes_ + scores_at(step_), scores);
        load_columns(lanes_ + scores_at(step_) + 32, scores + 32);
        if (visible < kThreadTokens) {
#pragma unroll
            for (int token = 0; token < kThreadTokens; ++token) {
                if (token >= visible) scores[token] = -INFINITY;
            }
        }
        float top = largest_;
#pragma unroll
        for (float score : scores) top = fmaxf(top, score);
        top = fmaxf(top, exchange(top));
        float factor = 1.0f;
        // Warps with the same rows agree, since they know the same maxima.
        if (__any_sync(~0u, (top - largest_) * a_.scale_log2 > kLag)) {
            factor = device::shrink(largest_ * a_.scale_log2, top * a_.scale_log2);
            largest_ = top;
            total_ *= factor;
        }
        // A row that has seen nothing: exp(-inf - -inf) would be NaN.
        const float reference = largest_ == -INFINITY ? 0.0f : largest_ * a_.scale_log2;
        const float2 scale = {a_.scale_log2, a_.scale_log2};
        float2 totals = {total_, 0.0f};
#pragma unroll
        for (int pair = 0; pair < kThreadTokens / 2; ++pair) {
            const float2 powers = ptx::multiply_add_pair({scores[2 * pair], scores[2 * pair + 1]},
                                                         scale, {-reference, -reference});
            const float2 two = {ptx::exp2_fast(powers.x), ptx::exp2_fast(powers.y)};
            totals = ptx::add_pair(totals, two);
            weights[pair] = device::pack_pair(two.x, two.y, T{});
        }
        total_ = totals.x + totals.y;
        return factor;
    }

    // The sums so far, which no product is adding to.
    __device__ __forceinline__ void rescale(float factor) {
        for (int column = 0; column < kLatent / 2; column += 32) {
            float values[32];
            load_columns(lanes_ + column, values);
            std::uint32_t words[32];
#pragma unroll
            for (int i = 0; i < 32; ++i) words[i] = __float_as_uint(values[i] * factor);
            ptx::tensor_store(lanes_ + column, words);
        }
        ptx::tensor_wait_for_stores();
    }

    // The thread's half of its row, under the 128-byte swizzle.
    __device__ __forceinline__ void store_weights(
        const std::uint32_t (&weights)[kThreadTokens / 2]) {
        const int row = thread_ % kBlockRows;
        std::uint8_t* to = shared_.weights[half_] + row * 128;
#pragma unroll
        for (int packet = 0; packet < 8; ++packet) {
            const std::uint32_t* four = &weights[packet * 4];
            *reinterpret_cast<uint4*>(to + (packet ^ row % 8) * 16) = {four[0], four[1], four[2],
                                                                       four[3]};
        }
    }

    // The pair's result, or an fp32 part.
    __device__ __forceinline__ void store(const Segment& segment) {
        total_ += exchange(total_);
        const float scale = total_ > 0.0f ? a_.value_scale / total_ : 0.0f;
        const bool is_part = segment.slot >= 0;
        const std::int64_t part =
            static_cast<std::int64_t>(segment.slot) * a_.row_blocks * kRows + row_;
        for (int column = 0; column < kLatent / 2; column += 32) {
            float sums[32] = {};
            if (tiles_of(segment) > 0) load_columns(lanes_ + column, sums);
            if (row_ >= a_.rows) continue;
            // Of every 256 columns, tensor memory has 128 in each half of the lanes.
            const int dim = column / 128 * kSumColumns + half_ * 128 + column % 128;
            if (is_part) {
                auto* to = reinterpret_cast<float4*>(a_.workspace.partials + part * kLatent + dim);
#pragma unroll
                for (int four = 0; four < 8; ++four) {
                    const float* at = &sums[four * 4];
                    to[four] = {at[0], at[1], at[2], at[3]};
                }
            } else {
                T* out =
                    static_cast<T*>(a_.out) + query_row(a_, segment.sequence, row_) * kLatent + dim;
#pragma unroll
                for (int packet = 0; packet < 4; ++packet) {
                    const auto pair = [&](int i) {
                        const float* at = &sums[packet * 8 + i];
                        return device::pack_pair(at[0] * scale, at[1] * scale, T{});
                    };
                    reinterpret_cast<uint4*>(out)[packet] = {pair(0), pair(2), pair(4), pair(6)};
                }
            }
        }
        if (is_part && half_ == 0 && row_ < a_.rows) {
            a_.workspace.maxima[part] = {largest_ * a_.scale_log2, total_};
        }
        // Before the next segment's first weights, which let products write the sums again.
        ptx::tensor_fence_before_sync();
    }

    const Arguments& a_;
    const Work work_;
    Memory& shared_;
    const int thread_;
    const int half_;
    const int row_;
    const std::uint32_t lanes_;
    unsigned turn_ = 0;
    unsigned step_ = 0;  // tile, counted over all segments
    // Maximum score before scaling; the weights are relative to it.
    float largest_;
    // Of the thread's tokens.
    float total_;
};

}  // namespace mla::blackwell
