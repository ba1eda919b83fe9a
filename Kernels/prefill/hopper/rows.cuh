// A consumer lane's share of scores and sums: softmax and epilogue.
//
// Of 64 rows, a warp holds sixteen and a lane rows lane / 4 and lane / 4 + 8 of those: in every
// eight columns, two neighbours in the first row, then two in the second.
#pragma once

#include <cstdint>

#include "Kernels/device/convert.cuh"
#include "Kernels/device/ptx/math.cuh"
#include "Kernels/prefill/arguments.cuh"

namespace prefill::hopper {

// A consumer lane's two rows: lane / 4 and lane / 4 + 8 of its warp's sixteen.
struct LaneRows {
    // Maximum score before scaling; the weights are relative to it.
    float largest[2];
    // This lane's share of the sums of weights.
    float total[2];
    // Factor to rescale the sums by before the next weights are added.
    float factor[2];
    bool moved;
};

// Masks keys at and after a query's limit, which counts from the step's first key for this lane's
// first row.
template <int kCount>
__device__ __forceinline__ void mask_scores(float (&scores)[kCount], int limit, int step) {
    const int column = threadIdx.x % 4 * 2;
#pragma unroll
    for (int index = 0; index < kCount; ++index) {
        const int key = index / 4 * 8 + column + index % 2;
        const int row = index / 2 % 2 * 8;
        if (key >= limit + step * row) scores[index] = -INFINITY;
    }
}

// Turns scores into weights relative to `largest`, which is updated if it lags too far.
template <int kCount>
__device__ __forceinline__ void weigh_scores(float (&scores)[kCount], LaneRows& rows,
                                             float scale_log2) {
    float largest[2] = {-INFINITY, -INFINITY};
#pragma unroll
    for (int index = 0; index < kCount; ++index) {
        largest[index / 2 % 2] = fmaxf(largest[index / 2 % 2], scores[index]);
    }
    bool lags = false;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        float& most = largest[half];
        most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, 1));
        most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, 2));
        lags = lags || (most - rows.largest[half]) * scale_log2 > kLag;
    }
    rows.moved = __any_sync(0xffffffffu, lags);
    if (rows.moved) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const float moved = fmaxf(rows.largest[half], largest[half]);
            rows.factor[half] = device::ptx::exp2_fast((rows.largest[half] - moved) * scale_log2);
            rows.largest[half] = moved;
            rows.total[half] *= rows.factor[half];
        }
    }
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

// Divides by the sums of weights and writes outputs through the warp's private shared memory, so
// that rows are written in whole packets.
template <class Traits>
__device__ __forceinline__ void write_rows(float (&sums)[Traits::kHeadDim / 2],
                                           const LaneRows& rows, unsigned char* staging,
                                           const PrefillArguments& arguments, const Tile& tile,
                                           int head, int first_row) {
    const int lane = threadIdx.x % 32;
    // Finishes reading the last item's packets before they are overwritten.
    __syncwarp();
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        float total = rows.total[half];
        total += __shfl_xor_sync(0xffffffffu, total, 1);
        total += __shfl_xor_sync(0xffffffffu, total, 2);
        const float inverse = 1.0f / total;
        const int row = half * 8 + lane / 4;
#pragma unroll
        for (int part = 0; part < Traits::kHeadDim / 8; ++part) {
            const std::uint32_t pair =
                device::pack_pair(sums[4 * part + 2 * half] * inverse,
                                  sums[4 * part + 2 * half + 1] * inverse, typename Traits::T{});
            const int place = row * Traits::kRowBytes + (part ^ (row % 8)) * 16;
            *reinterpret_cast<std::uint32_t*>(staging + place + lane % 4 * 4) = pair;
        }
        if (arguments.lse != nullptr && lane % 4 == 0 && first_row + row < tile.rows) {
            const std::int64_t place =
                std::int64_t{tile.first_row + first_row + row} * arguments.heads + head;
            const float reference = rows.largest[half] * arguments.scale_log2;
            arguments.lse[place] = (reference + log2f(total)) * kLn2;
        }
    }
    // All lanes' pairs are written before whole packets are read.
    __syncwarp();
    constexpr int kRowsAtOnce = 32 / Traits::kPackets;
    const int packet = lane % Traits::kPackets;
#pragma unroll
    for (int index = 0; index < 16 / kRowsAtOnce; ++index) {
        const int row = index * kRowsAtOnce + lane / Traits::kPackets;
        if (first_row + row < tile.rows) {
            const std::int64_t place =
                std::int64_t{tile.first_row + first_row + row} * arguments.heads + head;
            unsigned char* out = static_cast<unsigned char*>(arguments.out);
            *reinterpret_cast<uint4*>(out + place * Traits::kRowBytes + packet * 16) =
                *reinterpret_cast<const uint4*>(staging + row * Traits::kRowBytes +
                                                (packet ^ (row % 8)) * 16);
        }
    }
}

}  // namespace prefill::hopper
