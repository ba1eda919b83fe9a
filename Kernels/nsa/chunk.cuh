// One warp's step over a chunk of keys: 16 rows of queries, multiplied on tensor cores.
//
// In shared memory a chunk is kChunk keys and, kTensorBytes further, kChunk values: rows of kDim
// elements in units of 16 bytes, with unit u of row r at u ^ (r % 8), so that ldmatrix has no bank
// conflicts.
#pragma once

#include <cstdint>

#include "Kernels/device/convert.cuh"
#include "Kernels/device/ptx/math.cuh"
#include "Kernels/device/ptx/mma.cuh"

namespace nsa {

constexpr int kRows = 16;
constexpr float kLog2E = 1.44269504088896340736f;

template <class Traits>
__device__ __forceinline__ uint32_t place_of(int row, int unit) {
    return static_cast<uint32_t>(row * Traits::kDim * 2 + (unit ^ (row % 8)) * 16);
}

// Rows of the products: this thread's are quad and quad + 8.
template <class Traits>
struct Sums {
    float out[Traits::kDim / 8][4];
    float largest[2];
    float total[2];
};

// One chunk: scores, online softmax, weighted values. The mask says which keys of the chunk this
// thread's row 0 or 1 does not see.
template <class Traits, class Mask>
__device__ __forceinline__ void attend_chunk(const uint32_t (&query)[Traits::kDepth][4],
                                             uint32_t stage, const Mask& mask, float scale_log2,
                                             Sums<Traits>& sums) {
    using T = typename Traits::T;
    constexpr int kTiles = Traits::kChunk / 8;
    const int lane = threadIdx.x % 32;
    float scores[kTiles][4] = {};
#pragma unroll
    for (int depth = 0; depth < Traits::kDepth; ++depth) {
#pragma unroll
        for (int tile = 0; tile < kTiles; tile += 2) {
            uint32_t keys[4];
            const int row = tile * 8 + lane / 16 * 8 + lane % 8;
            const int unit = 2 * depth + lane / 8 % 2;
            device::ptx::load_matrices(keys, stage + place_of<Traits>(row, unit));
            device::ptx::multiply_add(scores[tile], query[depth], keys[0], keys[1], T{});
            device::ptx::multiply_add(scores[tile + 1], query[depth], keys[2], keys[3], T{});
        }
    }
    if (mask.hides_some()) {
#pragma unroll
        for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
            for (int place = 0; place < 4; ++place) {
                const int key = tile * 8 + lane % 4 * 2 + place % 2;
                if (mask.hides(place / 2, key)) scores[tile][place] = -INFINITY;
            }
        }
    }
    uint32_t weights[kTiles / 2][4];
    float shrink[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        float largest = sums.largest[half];
#pragma unroll
        for (const auto& tile : scores) {
            largest = fmaxf(largest, fmaxf(tile[2 * half], tile[2 * half + 1]));
        }
        largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, 1));
        largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, 2));
        // For a row that has seen nothing yet any finite number works: its weights are 0.
        const float top = Mask::kMayHideRows && largest == -INFINITY ? 0.0f : largest;
        shrink[half] = device::ptx::exp2_fast((sums.largest[half] - top) * scale_log2);
        sums.largest[half] = largest;
        const float offset = top * scale_log2;
        float total = 0.0f;
#pragma unroll
        for (int tile = 0; tile < kTiles; ++tile) {
            const float low =
                device::ptx::exp2_fast(fmaf(scores[tile][2 * half], scale_log2, -offset));
            const float high =
                device::ptx::exp2_fast(fmaf(scores[tile][2 * half + 1], scale_log2, -offset));
            total += low + high;
            weights[tile / 2][tile % 2 * 2 + half] = device::pack_pair(low, high, T{});
        }
        sums.total[half] = fmaf(sums.total[half], shrink[half], total);
    }
    // Most chunks raise no row's maximum.
    if (__any_sync(0xffffffffu, shrink[0] != 1.0f || shrink[1] != 1.0f)) {
#pragma unroll
        for (auto& tile : sums.out) {
            tile[0] *= shrink[0];
            tile[1] *= shrink[0];
            tile[2] *= shrink[1];
            tile[3] *= shrink[1];
        }
    }
#pragma unroll
    for (int step = 0; step < kTiles / 2; ++step) {
#pragma unroll
        for (int pair = 0; pair < Traits::kUnits / 2; ++pair) {
            uint32_t values[4];
            const int row = step * 16 + lane / 8 % 2 * 8 + lane % 8;
            const int unit = 2 * pair + lane / 16;
            device::ptx::load_matrices_transposed(
                values, stage + Traits::kTensorBytes + place_of<Traits>(row, unit));
            device::ptx::multiply_add(sums.out[2 * pair], weights[step], values[0], values[1], T{});
            device::ptx::multiply_add(sums.out[2 * pair + 1], weights[step], values[2], values[3],
                                      T{});
        }
    }
}

// A warp's rows as product operands: word w of step d has the two elements at column 16 d + lane %
// 4 * 2 + w / 2 * 8 of row lane / 4 + w % 2 * 8. `row_at` returns a row's elements, or null for a
// row that does not exist.
template <class Traits, class RowAt>
__device__ __forceinline__ void load_query(uint32_t (&query)[Traits::kDepth][4],
                                           const RowAt& row_at) {
    using T = typename Traits::T;
    const int lane = threadIdx.x % 32;
    const T* const rows[2] = {row_at(lane / 4), row_at(lane / 4 + 8)};
#pragma unroll
    for (int depth = 0; depth < Traits::kDepth; ++depth) {
#pragma unroll
        for (int word = 0; word < 4; ++word) {
            const T* row = rows[word % 2];
            const int column = depth * 16 + lane % 4 * 2 + word / 2 * 8;
            query[depth][word] =
                row != nullptr ? __ldg(reinterpret_cast<const unsigned*>(row + column)) : 0u;
        }
    }
}

}  // namespace nsa
