// Softmax of Blackwell's decode kernel: a warpgroup. Lane t of tensor memory, and with it thread t,
// has token t of a tile for all rows; of the sums it has a dimension for all rows.
#pragma once

#include <cstdint>

#include "Kernels/decode/blackwell/copy.cuh"
#include "Kernels/decode/blackwell/storage.cuh"
#include "Kernels/decode/merge.cuh"
#include "Kernels/device/convert.cuh"
#include "Kernels/device/ptx/math.cuh"
#include "Kernels/device/ptx/memory.cuh"
#include "Kernels/device/ptx/named_barrier.cuh"
#include "Kernels/device/ptx/registers.cuh"
#include "Kernels/device/ptx/tensor_columns.cuh"
#include "Kernels/device/softmax_rows.cuh"

namespace decode::blackwell {

// How far the running maximum may lag, as a power of two: weights stay below 2^8, which all types
// can hold, and the sums are almost never rescaled. FP8 has weights relative to less than the
// maximum, since the range below one is where its codes end.
template <class Tr>
constexpr float kLag = Tr::kFp8 ? 3.0f : 8.0f;
template <class Tr>
constexpr float kBias = Tr::kFp8 ? 8.0f - kLag<Tr> : 0.0f;
// Barrier 0 is __syncthreads, 4 that of the team in merge.cuh.
constexpr std::uint32_t kSoftmaxBarrier = 1;

// 16 rows of scores or sums, complete on return.
template <class Tr>
__device__ __forceinline__ void load_rows(std::uint32_t address, float (&values)[16]) {
    std::uint32_t words[Tr::kTerms][16];
#pragma unroll
    for (int term = 0; term < Tr::kTerms; ++term) {
        ptx::tensor_load(words[term], address + term * Tr::kRows);
    }
    ptx::tensor_wait_for_loads();
#pragma unroll
    for (int term = Tr::kTerms - 1; term >= 0; --term) {
        ptx::pin(words[term]);
#pragma unroll
        for (int row = 0; row < 16; ++row) {
            const float value = __uint_as_float(words[term][row]);
            values[row] =
                term + 1 == Tr::kTerms ? value : fmaf(values[row], 1.0f / kTermScale, value);
        }
    }
}

template <class Tr>
class Softmax {
  public:
    __device__ Softmax(const Arguments& a, const Work& work, Storage<Tr>& shared)
        : a_(a),
          shared_(shared),
          thread_(threadIdx.x % kSoftmaxThreads),
          first_row_(work.row_block * Tr::kRows),
          lanes_(shared.tensor_memory + (static_cast<std::uint32_t>(thread_ / 32 * 32) << 16)) {}

    // Calls `store` with every segment, once its sums are complete.
    template <class Store>
    __device__ void run(const Work& work, Store store) {
        for_each_segment(a_, work, [&](const Segment& segment) {
            attend(segment);
            store(segment);
        });
    }

    // The thread's dimension of a part; none for half of the lanes if heads have 64.
    __device__ bool has_dimension() const { return Tr::kPartDim == 128 || thread_ % 32 < 16; }
    __device__ int dimension(int part) const {
        return part * Tr::kPartDim +
               (Tr::kPartDim == 128 ? thread_ : thread_ / 32 * 16 + thread_ % 16);
    }
    // Of 16 rows, and of all tokens of the segment; zeros if it has none.
    __device__ __forceinline__ void load_sums(const Segment& segment, int part, int from,
                                              float (&sums)[16]) const {
#pragma unroll
        for (float& sum : sums) sum = 0.0f;
        if (segment.tile_begin < segment.tile_end) {
            load_rows<Tr>(lanes_ + sums_at(part) + from, sums);
        }
    }
    // Largest score, in base 2, and sum of weights.
    __device__ __forceinline__ float2 maximum(int row) const {
        return {shared_.references[row], totals_[row]};
    }

    static __device__ constexpr std::uint32_t scores_at(unsigned step) {
        return step % 2 * Tr::kColumns;
    }
    static __device__ constexpr std::uint32_t sums_at(int part) {
        return (2 + part) * Tr::kColumns;
    }

  private:
    __device__ __forceinline__ void attend(const Segment& segment) {
#pragma unroll
        for (float& total : totals_) total = 0.0f;
        if (segment.tile_begin >= segment.tile_end) return;
        if constexpr (Tr::kFp8) {
            ptx::mbarrier_wait(&shared_.queries_full[slot_.stage], slot_.parity);
        }
        // Tokens that the first query sees from the thread's on.
        int left = segment.length - a_.q_len + 1 - segment.tile_begin * kTokens - thread_;
        for (int tile = segment.tile_begin; tile < segment.tile_end; ++tile, left -= kTokens) {
            weigh(left, tile == segment.tile_begin);
        }
        if constexpr (Tr::kFp8) {
            // The scales have been read.
            __syncwarp();
            if (thread_ % 32 == 0) ptx::mbarrier_arrive(&shared_.queries_empty[slot_.stage]);
            slot_.advance();
        }
        add_up();
        wait_for_sums();
    }

    // The sums of all steps so far.
    __device__ __forceinline__ void wait_for_sums() {
        const unsigned last = step_ - 1;
        ptx::mbarrier_wait(&shared_.sums_full[last % 2], last / 2 & 1);
        ptx::tensor_fence_after_sync();
    }

    // Turns the scores of a tile into weights.
    __device__ __forceinline__ void weigh(int left, bool is_first) {
        ptx::mbarrier_wait(&shared_.scores_full[step_ % 2], step_ / 2 & 1);
        ptx::tensor_fence_after_sync();
        float scores[Tr::kRows];
        bool lags = is_first;
#pragma unroll
        for (int from = 0; from < Tr::kRows; from += 16) {
            float loaded[16];
            load_rows<Tr>(lanes_ + scores_at(step_) + from, loaded);
#pragma unroll
            for (int row = from; row < from + 16; ++row) {
                scores[row] = loaded[row - from] * scale_of(row);
                // Later queries see more.
                if (left <= 0 && left + query_of(row) <= 0) scores[row] = -INFINITY;
                if (!is_first && scores[row] > shared_.references[row] + kLag<Tr>) lags = true;
            }
        }
        // Every thread learns of any; and all have read what raise() told the last time.
        if (ptx::named_barrier_or(kSoftmaxBarrier, kSoftmaxThreads, lags)) raise(scores, is_first);
#pragma unroll
        for (int row = 0; row < Tr::kRows; ++row) {
            // A row that has seen nothing: exp(-inf - -inf) would be NaN.
            float reference = shared_.references[row];
            if (reference == -INFINITY) reference = 0.0f;
            scores[row] = ptx::exp2_fast(scores[row] - (reference - kBias<Tr>));
            totals_[row] += scores[row];
        }
        // The scores came after the products that read the weights here before.
        store_weights(scores);
        // Products may read the weights, and write over the scores.
        ptx::fence_async_proxy();
        ptx::tensor_fence_before_sync();
        __syncwarp();
        if (thread_ % 32 == 0) ptx::mbarrier_arrive(&shared_.weights_full[step_ % 2]);
        ++step_;
    }

    __device__ __forceinline__ float scale_of(int row) const {
        if constexpr (Tr::kFp8) {
            return shared_.query_scales[slot_.stage][row] * a_.scale_log2;
        } else {
            return a_.scale_log2;
        }
    }
    __device__ __forceinline__ int query_of(int row) const {
        return min(a_.group.quotient(first_row_ + row), a_.q_len - 1);
    }

    // Brings every row's reference up to its maximum, and the sums with it.
    __device__ __forceinline__ void raise(const float (&scores)[Tr::kRows], bool is_first) {
        tell(shared_.maxima, scores, [](float a, float b) { return fmaxf(a, b); });
        if (thread_ < Tr::kRows) {
            const float before = is_first ? -INFINITY : shared_.references[thread_];
            float top = before;
#pragma unroll
            for (const auto& told : shared_.maxima) top = fmaxf(top, told[thread_]);
            shared_.references[thread_] = top;
            shared_.factors[thread_] = device::shrink(before, top);
        }
        // Every row's reference is there before anyone reads it.
        ptx::named_barrier_sync(kSoftmaxBarrier, kSoftmaxThreads);
        if (is_first) return;
#pragma unroll
        for (int row = 0; row < Tr::kRows; ++row) totals_[row] *= shared_.factors[row];
        wait_for_sums();
        for (int from = 0; from < Tr::kParts * Tr::kColumns; from += 8) rescale(from);
        ptx::tensor_wait_for_stores();
    }

    // Eight columns of the sums so far, of any part, which no product is adding to.
    __device__ __forceinline__ void rescale(int from) {
        const std::uint32_t address = lanes_ + sums_at(0) + from;
        const float* factors = shared_.factors + from % Tr::kRows;
        std::uint32_t words[8];
        ptx::tensor_load(words, address);
        ptx::tensor_wait_for_loads();
        ptx::pin(words);
#pragma unroll
        for (int row = 0; row < 8; ++row) {
            words[row] = __float_as_uint(__uint_as_float(words[row]) * factors[row]);
        }
        ptx::tensor_store(address, words);
    }

    // The totals of all tokens.
    __device__ __forceinline__ void add_up() {
        tell(shared_.totals, totals_, [](float a, float b) { return a + b; });
#pragma unroll
        for (int row = 0; row < Tr::kRows; ++row) {
            totals_[row] = 0.0f;
#pragma unroll
            for (const auto& told : shared_.totals) totals_[row] += told[row];
        }
    }

    // Combines the lanes' values of every row, for the other warps to read on return.
    template <class Combine>
    __device__ __forceinline__ void tell(float (&told)[kSoftmaxWarps][Tr::kRows],
                                         const float (&values)[Tr::kRows], Combine combine) {
#pragma unroll
        for (int row = 0; row < Tr::kRows; ++row) {
            float value = values[row];
#pragma unroll
            for (int distance = 16; distance > 0; distance /= 2) {
                value = combine(value, __shfl_xor_sync(~0u, value, distance));
            }
            if (thread_ % 32 == row % 32) told[thread_ / 32][row] = value;
        }
        // Every warp's values are there before anyone reads them.
        ptx::named_barrier_sync(kSoftmaxBarrier, kSoftmaxThreads);
    }

    // The thread's token of every packet of rows.
    __device__ __forceinline__ void store_weights(const float (&weights)[Tr::kRows]) {
        auto* to = reinterpret_cast<uint4*>(shared_.weights[step_ % 2]) + thread_;
#pragma unroll
        for (int from = 0; from < Tr::kRows; from += Tr::kPacket) {
            std::uint32_t words[Tr::kTerms][4];
#pragma unroll
            for (int word = 0; word < 4; ++word) {
                if constexpr (Tr::kFp8) {
                    const float* four = &weights[from + word * 4];
                    const Codes low({four[0], four[1]}), high({four[2], four[3]});
#pragma unroll
                    for (int term = 0; term < Tr::kTerms; ++term) {
                        words[term][word] = low.terms[term] | high.terms[term] << 16;
                    }
                } else {
                    const float* pair = &weights[from + word * 2];
                    words[0][word] = device::pack_pair(pair[0], pair[1], typename Tr::T{});
                }
            }
#pragma unroll
            for (int term = 0; term < Tr::kTerms; ++term) {
                to[(term * Tr::kRows + from) / Tr::kPacket * kTokens] = {
                    words[term][0], words[term][1], words[term][2], words[term][3]};
            }
        }
    }

    const Arguments& a_;
    Storage<Tr>& shared_;
    const int thread_;
    const int first_row_;
    const std::uint32_t lanes_;
    unsigned step_ = 0;  // tile, counted over all segments
    Ring<Tr::kSlots> slot_;
    // Of the thread's tokens; in the end, of all.
    float totals_[Tr::kRows];
};

}  // namespace decode::blackwell
