// A consumer's mainloop over one tile of Hopper's kernel, from stages to accumulators.
#pragma once

#include <cstdint>

#include "Kernels/device/ptx/named_barrier.cuh"
#include "Kernels/device/ptx/registers.cuh"
#include "Kernels/gemm/hopper/traits.cuh"

namespace gemm::hopper {

// Two consumers ping-pong: over whole tiles, or with FP8 over issuing the products of a step.
// Otherwise they start together, end together and scale together, while the tensor cores idle.
constexpr int kFirstTurnBarrier = 2;

template <class Traits>
__device__ __forceinline__ void take_turn(int consumer) {
    if constexpr (Traits::kConsumers == 2) {
        ptx::named_barrier_sync(kFirstTurnBarrier + consumer, 256);
    }
}

template <class Traits>
__device__ __forceinline__ void pass_turn(int consumer) {
    if constexpr (Traits::kConsumers == 2) {
        ptx::named_barrier_arrive(kFirstTurnBarrier + 1 - consumer, 256);
    }
}

// 16-bit operands: one group of products stays in flight while the next is issued. A consumer that
// alternates has taken its turn.
template <class Traits>
__device__ __forceinline__ void sum_tile(typename Traits::SharedStorage& shared, int steps,
                                         int consumer, Descriptors descriptors,
                                         Ring<Traits::kStages>& ring, Halves<Traits>& sums) {
    const auto pin_all = [&] {
        for (auto& half : sums) ptx::pin(half);
    };
    int previous = 0;
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
        ptx::mbarrier_wait_opaque(&shared.full[ring.stage], ring.parity);
        pin_all();
        ptx::wgmma_fence();
#pragma unroll
        for (int half = 0; half < Traits::kHalves; ++half) {
            multiply_stage<Traits>(descriptors, ring.stage, half, sums[half], step > 0);
        }
        ptx::wgmma_commit();
        pin_all();
        ptx::wgmma_wait<1>();
        if (step > 0) release<Traits>(shared.empty[previous]);
        previous = ring.stage;
        ring.advance();
    }
    if constexpr (Traits::kAlternates) pass_turn<Traits>(consumer);
    ptx::wgmma_wait<0>();
    pin_all();
    release<Traits>(shared.empty[previous]);
}

// Factors of one step's sums: for the thread's two rows and the columns that have one scale.
template <class Traits>
struct StepScales {
    static constexpr int kParts = Traits::kColumns / Traits::kScaledColumns;
    float row[kParts], row8[kParts];
};

// Scales of b for the tile's columns: of two blocks of columns, if there are two.
template <class Traits>
class ColumnScales {
  public:
    __device__ ColumnScales(const Gemm& p, const Tile& tile, Part steps)
        : second_(kScaleBlock - tile.column % kScaleBlock), end_(steps.end) {
        if constexpr (Traits::kStagesColumnScales) return;
        line_ = b_scales_of(p, tile);
        to_second_ = to_next_b_scales(p, tile);
        load(steps.begin);
    }

    // Of the step in a stage, and of the rows.
    __device__ __forceinline__ void multiply(const typename Traits::SharedStorage& shared,
                                             int stage, int step, float row, float row8,
                                             StepScales<Traits>& scales) {
        if constexpr (Traits::kStagesColumnScales) next_ = shared.b_scales[stage];
#pragma unroll
        for (int part = 0; part < StepScales<Traits>::kParts; ++part) {
            const bool first =
                Traits::kColumnScales == 1 || part * Traits::kScaledColumns < second_;
            const float column = first ? next_.x : next_.y;
            scales.row[part] = row * column;
            scales.row8[part] = row8 * column;
        }
        if constexpr (!Traits::kStagesColumnScales) load(step + 1);
    }

  private:
    __device__ __forceinline__ void load(int step) {
        const float* at = line_ + min(step, end_ - 1);
        next_.x = __ldg(at);
        if constexpr (Traits::kColumnScales == 2) next_.y = __ldg(at + to_second_);
    }

    int second_;  // the first column of the second block
    int end_, to_second_;
    const float* line_;
    float2 next_;
};

template <class Traits>
__device__ __forceinline__ void promote(const StepScales<Traits>& scales, const Sums<Traits>& sums,
                                        Sums<Traits>& totals) {
#pragma unroll
    for (int i = 0; i < Traits::kColumns / 2; i += 4) {
        const int part = 2 * i / Traits::kScaledColumns;
        totals[i] += scales.row[part] * sums[i];
        totals[i + 1] += scales.row[part] * sums[i + 1];
        totals[i + 2] += scales.row8[part] * sums[i + 2];
        totals[i + 3] += scales.row8[part] * sums[i + 3];
    }
}

// FP8: after each step the sums are scaled and promoted to the totals.
template <class Traits>
class ScaledSummer {
  public:
    __device__ ScaledSummer(const Gemm& p, const Tile& tile, typename Traits::SharedStorage& shared,
                            Part steps, int first_row, Descriptors descriptors,
                            Ring<Traits::kStages>& ring)
        : shared_(shared),
          descriptors_(descriptors),
          ring_(ring),
          released_(ring.stage),
          consumer_(first_row / 64),
          columns_(p, tile, steps) {
        // This thread's rows; those in a short tile's missing half are dropped later.
        const int row = first_row + threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4;
        row_ = min(row, Traits::kRows - 1);
        row8_ = min(row + 8, Traits::kRows - 1);
    }

    __device__ __forceinline__ void wait() {
        ptx::mbarrier_wait_opaque(&shared_.full[ring_.stage], ring_.parity);
    }

    // Issues the products of a step whose operands have arrived.
    __device__ __forceinline__ void start(int step, Sums<Traits>& sums,
                                          StepScales<Traits>& scales) {
        take_turn<Traits>(consumer_);
        ptx::pin(sums);
        ptx::wgmma_fence();
        multiply_stage<Traits>(descriptors_, ring_.stage, 0, sums, false);
        ptx::wgmma_commit();
        pass_turn<Traits>(consumer_);
        // Scales are not needed before these products are done.
        const float* rows = shared_.a_scales[ring_.stage];
        columns_.multiply(shared_, ring_.stage, step, rows[row_], rows[row8_], scales);
        ring_.advance();
    }

    // Releases the stage of the oldest products, which are done.
    __device__ __forceinline__ void end(Sums<Traits>& sums) {
        ptx::pin(sums);
        release<Traits>(shared_.empty[released_]);
        released_ = released_ + 1 == Traits::kStages ? 0 : released_ + 1;
    }

  private:
    typename Traits::SharedStorage& shared_;
    Descriptors descriptors_;
    Ring<Traits::kStages>& ring_;
    int released_, consumer_, row_, row8_;
    ColumnScales<Traits> columns_;
};

// One set of sums: they are added before the next step's products overwrite them. What follows the
// wait for a stage is one basic block: addresses and scales of the next products are computed
// between the additions.
template <class Traits>
__device__ __forceinline__ void sum_steps(ScaledSummer<Traits>& summer, Part steps,
                                          Sums<Traits>& totals) {
    Sums<Traits> sums;
    StepScales<Traits> scales;
    summer.wait();
    summer.start(steps.begin, sums, scales);
#pragma unroll 1
    for (int step = steps.begin + 1; step < steps.end; ++step) {
        ptx::wgmma_wait<0>();
        summer.end(sums);
        summer.wait();
        promote<Traits>(scales, sums, totals);
        summer.start(step, sums, scales);
    }
    ptx::wgmma_wait<0>();
    summer.end(sums);
    promote<Traits>(scales, sums, totals);
}

// Two sets, if registers allow: one is added while the other's products are in flight.
template <class Traits>
__device__ __forceinline__ void sum_steps_doubly(ScaledSummer<Traits>& summer, Part steps,
                                                 Sums<Traits>& totals) {
    Sums<Traits> even, odd;
    StepScales<Traits> even_scales, odd_scales;
    const auto begin = [&](int step, Sums<Traits>& sums, StepScales<Traits>& scales) {
        summer.wait();
        summer.start(step, sums, scales);
    };
    const auto finish = [&](Sums<Traits>& sums, const StepScales<Traits>& scales) {
        summer.end(sums);
        promote<Traits>(scales, sums, totals);
    };
    begin(steps.begin, even, even_scales);
    int step = steps.begin + 1;
#pragma unroll 1
    for (; step + 1 < steps.end; step += 2) {
        begin(step, odd, odd_scales);
        ptx::wgmma_wait<1>();
        finish(even, even_scales);
        begin(step + 1, even, even_scales);
        ptx::wgmma_wait<1>();
        finish(odd, odd_scales);
    }
    if (step < steps.end) {
        begin(step, odd, odd_scales);
        ptx::wgmma_wait<1>();
        finish(even, even_scales);
        ptx::wgmma_wait<0>();
        finish(odd, odd_scales);
    } else {
        ptx::wgmma_wait<0>();
        finish(even, even_scales);
    }
}

template <class Traits>
__device__ __forceinline__ void sum_scaled_tile(const Gemm& p, const Tile& tile,
                                                typename Traits::SharedStorage& shared, Part steps,
                                                int first_row, Descriptors descriptors,
                                                Ring<Traits::kStages>& ring, Sums<Traits>& totals) {
    ScaledSummer<Traits> summer(p, tile, shared, steps, first_row, descriptors, ring);
    if constexpr (Traits::kRows == 128 && Traits::kColumns <= 128) {
        sum_steps_doubly<Traits>(summer, steps, totals);
    } else {
        sum_steps<Traits>(summer, steps, totals);
    }
}

}  // namespace gemm::hopper
