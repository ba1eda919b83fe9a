// A consumer lane's share of scores and sums: softmax and epilogue.
//
// Of 64 rows, a warp holds sixteen and a lane rows lane / 4 and lane / 4 + 8 of those: in every
// eight columns, two neighbours in the first row, then two in the second.
#pragma once

#include <cstdint>

#include "Kernels/device/convert.cuh"
#include "Kernels/device/ptx/math.cuh"
#include "Kernels/device/softmax_rows.cuh"
#include "Kernels/prefill/arguments.cuh"
#include "Kernels/prefill/hopper/traits.cuh"

namespace prefill::hopper {

// A consumer lane's two rows: lane / 4 and lane / 4 + 8 of its warp's sixteen.
struct LaneRows {
    // Maximum score before scaling, which may lag; the weights are relative to it.
    float largest[2];
    // Scores up to this one need no new maximum; NaN if that cannot be told from the largest
    // integer among them (weigh_scores).
    float enough[2];
    // This lane's share of the sums of weights.
    float total[2];
    // Factor to rescale the sums by before the next weights are added.
    float factor[2];
    bool moved;
};

// Before the first step.
__device__ __forceinline__ LaneRows no_rows() {
    return {{-INFINITY, -INFINITY}, {NAN, NAN}, {0.0f, 0.0f}, {1.0f, 1.0f}, false};
}

// Masks keys at and after a row's limit, which counts from the step's first key.
template <int kCount>
__device__ __forceinline__ void mask_scores(float (&scores)[kCount], int limit, int second_limit) {
    const int column = threadIdx.x % 4 * 2;
    const int limits[2] = {limit - column, second_limit - column};
#pragma unroll
    for (int index = 0; index < kCount; ++index) {
        if (index / 4 * 8 + index % 2 >= limits[index / 2 % 2]) scores[index] = -INFINITY;
    }
}

// The largest of a row's scores as integers: the largest score, unless all are negative; then any.
// Hopper takes the maximum of three integers in one instruction, that of floats only of two.
template <int kCount>
__device__ __forceinline__ float largest_integer(const float (&scores)[kCount], int half) {
    const auto score = [&](int index) {
        return __float_as_int(scores[index / 2 * 4 + 2 * half + index % 2]);
    };
    // Two chains, for the latency.
    int most[2] = {score(0), score(1)};
#pragma unroll
    for (int index = 2; index + 3 < kCount / 2; index += 4) {
        most[0] = max(max(most[0], score(index)), score(index + 2));
        most[1] = max(max(most[1], score(index + 1)), score(index + 3));
    }
    static_assert(kCount % 8 == 0, "the last two scores of a row are left");
    return __int_as_float(
        max(max(most[0], score(kCount / 2 - 2)), max(most[1], score(kCount / 2 - 1))));
}

// Moves `largest` to the rows' maxima and prepares to rescale what was added relative to the last.
template <int kCount>
__device__ __forceinline__ void move_maxima(const float (&scores)[kCount], LaneRows& rows,
                                            float scale_log2) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        float largest = rows.largest[half];
#pragma unroll
        for (int index = 2 * half; index < kCount; index += 4) {
            largest = fmaxf(largest, fmaxf(scores[index], scores[index + 1]));
        }
        largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, 1));
        largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, 2));
        rows.factor[half] = device::ptx::exp2_fast((rows.largest[half] - largest) * scale_log2);
        rows.largest[half] = largest;
        rows.total[half] *= rows.factor[half];
        const float enough = largest + kLag / scale_log2;
        rows.enough[half] = enough >= 0.0f ? enough : NAN;
    }
}

// Turns scores into weights relative to `largest`, which moves when a score is too far above it.
// Almost no step does: lanes look at their own scores only, and nothing is shuffled.
template <int kCount>
__device__ __forceinline__ void weigh_scores(float (&scores)[kCount], LaneRows& rows,
                                             float scale_log2) {
    const bool lags = !(largest_integer(scores, 0) <= rows.enough[0]) ||
                      !(largest_integer(scores, 1) <= rows.enough[1]);
    rows.moved = __any_sync(0xffffffffu, lags);
    if (rows.moved) move_maxima(scores, rows, scale_log2);
    const float reference[2] = {rows.largest[0] * scale_log2, rows.largest[1] * scale_log2};
#pragma unroll
    for (int index = 0; index < kCount; ++index) {
        const int half = index / 2 % 2;
        scores[index] = device::ptx::exp2_fast(fmaf(scores[index], scale_log2, -reference[half]));
        rows.total[half] += scores[index];
    }
}

template <class T, int kCount>
__device__ __forceinline__ void pack_weights(std::uint32_t (&weights)[kCount / 2],
                                             const float (&scores)[kCount]) {
#pragma unroll
    for (int index = 0; index < kCount / 2; ++index) {
        weights[index] = device::pack_pair(scores[2 * index], scores[2 * index + 1], T{});
    }
}

template <int kCount>
__device__ __forceinline__ void rescale(float (&sums)[kCount], const LaneRows& rows) {
    if (!rows.moved) return;
#pragma unroll
    for (int index = 0; index < kCount; ++index) sums[index] *= rows.factor[index / 2 % 2];
}

// What a lane's two rows are: of which query and head.
struct LanePlaces {
    const PrefillArguments& arguments;
    const Piece& piece;
    int first;  // row of the tile; the other is 8 further

    __device__ __forceinline__ int query(int half) const {
        return (first + 8 * half) / arguments.heads_per_tile;
    }
    // Keys that the row sees.
    __device__ __forceinline__ int limit(int half) const {
        return piece.tile.visible + piece.tile.step * query(half);
    }
    __device__ __forceinline__ bool valid(int half) const { return query(half) < piece.tile.rows; }
    // In the output or among the parts, in rows of one head.
    __device__ __forceinline__ std::int64_t place(int half, int first_row) const {
        const int row = query(half);
        const int head = piece.head + first + 8 * half - row * arguments.heads_per_tile;
        return std::int64_t{first_row + row} * arguments.heads + head;
    }
};

// Divides by the sums of weights and writes outputs in whole packets, which four lanes exchange.
template <class Traits>
__device__ __forceinline__ void write_rows(const float (&sums)[Traits::kValueDim / 2],
                                           const LaneRows& rows, const LanePlaces& places,
                                           const PrefillArguments& arguments) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const float total = device::sum_of_four_lanes(rows.total[half]);
        const float inverse = 1.0f / total;
        const bool valid = places.valid(half);
        const std::int64_t place = places.place(half, places.piece.tile.first_row);
        uint4* out = static_cast<uint4*>(arguments.out) + place * Traits::kPackets + lane % 4;
#pragma unroll
        for (int packet = 0; packet < Traits::kPackets; packet += 4) {
            std::uint32_t words[4];
#pragma unroll
            for (int word = 0; word < 4; ++word) {
                const float* pair = sums + 4 * (packet + word) + 2 * half;
                words[word] =
                    device::pack_pair(pair[0] * inverse, pair[1] * inverse, typename Traits::T{});
            }
            device::transpose_quad(words);
            if (valid) out[packet] = {words[0], words[1], words[2], words[3]};
        }
        if (arguments.lse != nullptr && lane % 4 == 0 && valid) {
            const float reference = rows.largest[half] * arguments.scale_log2;
            arguments.lse[place] = (reference + log2f(total)) * kLn2;
        }
    }
}

// Writes what is merged with the results of other keys.
template <class Traits>
__device__ __forceinline__ void write_part(const float (&sums)[Traits::kValueDim / 2],
                                           const LaneRows& rows, const LanePlaces& places,
                                           const PrefillArguments& arguments) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const float total = device::sum_of_four_lanes(rows.total[half]);
        if (!places.valid(half)) continue;
        const std::int64_t place = places.place(half, places.piece.tile.part_row);
        auto* out = reinterpret_cast<float2*>(arguments.parts.sums + place * Traits::kValueDim);
#pragma unroll
        for (int eight = 0; eight < Traits::kValueDim / 8; ++eight) {
            const float* pair = sums + 4 * eight + 2 * half;
            out[eight * 4 + lane % 4] = {pair[0], pair[1]};
        }
        if (lane % 4 == 0) {
            arguments.parts.maxima[place] = {rows.largest[half] * arguments.scale_log2, total};
        }
    }
}

}  // namespace prefill::hopper
