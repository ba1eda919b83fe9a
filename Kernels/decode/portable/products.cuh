// A warp's work on one tile: scores, weights, sums.
#pragma once

#include <cstdint>

#include "Kernels/decode/portable/fp8_products.cuh"
#include "Kernels/decode/portable/loader.cuh"
#include "Kernels/device/convert.cuh"
#include "Kernels/device/ptx/mma.cuh"
#include "Kernels/device/softmax_rows.cuh"

namespace decode::portable {

// A warp's state for its rows of a segment. A lane holds rows quad and quad + 8 of a tile.
template <class Tr>
struct Softmax {
    float sums[Tr::kRowTiles][Tr::kDim / 8][4];
    float largest[Tr::kRowTiles][2];
    float total[Tr::kRowTiles][2];

    __device__ void start() {
#pragma unroll
        for (int tile = 0; tile < Tr::kRowTiles; ++tile) {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                largest[tile][half] = -INFINITY;
                total[tile][half] = 0.0f;
            }
#pragma unroll
            for (auto& sum : sums[tile]) sum[0] = sum[1] = sum[2] = sum[3] = 0.0f;
        }
    }
};

// The queries of a segment as operands of products over the head dimension. Those of a second tile
// of rows, and all of wide heads, stay in shared memory, where the sums go at the end of a segment:
// the loop over tiles has no registers for them, and anything spilled to local memory queues behind
// the copies.
template <class Tr>
struct Queries {
    static constexpr int kSteps = Tr::kDim / 16;
    // Tiles of rows in registers.
    static constexpr int kHeld = Tr::kDim > 128 ? 0 : 1;
    static_assert(Tr::kRowTiles <= kHeld + 1, "shared memory has room for one tile of rows");

    std::uint32_t words[kSteps][4];
    // For this lane, one of 32 per step.
    uint4* stored;
    // Scale of the rows' scores, in base 2.
    float scale_log2[Tr::kRowTiles][2];

    __device__ void load(const Arguments& a, const Segment& segment, int first_row,
                         WarpStorage<Tr>& own) {
        static_assert(sizeof(own.sums) == 32 * kSteps * sizeof(uint4),
                      "the sums take the same space");
        const int lane = threadIdx.x % 32;
        stored = reinterpret_cast<uint4*>(own.sums) + lane;
#pragma unroll
        for (int tile = Tr::kRowTiles - 1; tile >= 0; --tile) {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const int row = first_row + tile * kTileRows + half * 8 + lane / 4;
                // Rows past the last repeat it; their results are never stored.
                const int known = min(row, a.rows - 1);
                const int query = a.group.quotient(known);
                const int head = (segment.kv_head - query) * a.group.value + known;
                const std::int64_t start =
                    (static_cast<std::int64_t>(segment.sequence) * a.q_len + query) * a.heads +
                    head;
                const auto* from = static_cast<const std::uint32_t*>(a.q) + start * (Tr::kDim / 2);
                if constexpr (Tr::kFp8) {
                    const float scale = load_row_as_halves(words, half, from, a.is_bf16);
                    scale_log2[tile][half] = a.scale_log2 * scale;
                } else {
                    scale_log2[tile][half] = a.scale_log2;
#pragma unroll
                    for (int step = 0; step < kSteps; ++step) {
                        words[step][half] = __ldg(from + step * 8 + lane % 4);
                        words[step][half + 2] = __ldg(from + step * 8 + 4 + lane % 4);
                    }
                }
            }
            if (tile < kHeld) break;
#pragma unroll
            for (int step = 0; step < kSteps; ++step) {
                stored[32 * step] = {words[step][0], words[step][1], words[step][2],
                                     words[step][3]};
            }
        }
    }

    __device__ __forceinline__ void operand(std::uint32_t (&left)[4], int tile, int step) const {
        if (tile < kHeld) {
#pragma unroll
            for (int word = 0; word < 4; ++word) left[word] = words[step][word];
        } else {
            const uint4 four = stored[32 * step];
            memcpy(left, &four, sizeof(left));
        }
    }
};

// Scores of one tile, in base 2.
template <class Tr>
__device__ __forceinline__ void multiply_keys(const Queries<Tr>& queries, std::uint32_t keys,
                                              float (&scores)[Tr::kRowTiles][Tr::kTokens / 8][4]) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (auto& tile : scores) {
#pragma unroll
        for (auto& four : tile) four[0] = four[1] = four[2] = four[3] = 0.0f;
    }
    // Two packets of a row at a time: 16 elements, or 32 of FP8.
    constexpr int kPerStep = Tr::kFp8 ? 2 : 1;
#pragma unroll
    for (int step = 0; step < Tr::kPackets / 2; ++step) {
        std::uint32_t left[Tr::kRowTiles][kPerStep][4];
#pragma unroll
        for (int tile = 0; tile < Tr::kRowTiles; ++tile) {
#pragma unroll
            for (int part = 0; part < kPerStep; ++part) {
                queries.operand(left[tile][part], tile, kPerStep * step + part);
            }
        }
#pragma unroll
        for (int tokens = 0; tokens < Tr::kTokens / 16; ++tokens) {
            const int row = tokens * 16 + lane / 16 * 8 + lane % 8;
            std::uint32_t words[4];
            ptx::load_matrices(words, keys + place<Tr>(row, 2 * step + lane / 8 % 2));
#pragma unroll
            for (int eight = 0; eight < 2; ++eight) {
                const std::uint32_t* pair = words + 2 * eight;
#pragma unroll
                for (int tile = 0; tile < Tr::kRowTiles; ++tile) {
                    float (&sums)[4] = scores[tile][2 * tokens + eight];
                    if constexpr (Tr::kFp8) {
#pragma unroll
                        for (int packet = 0; packet < 2; ++packet) {
                            ptx::multiply_add(sums, left[tile][packet], low_halves(pair[packet]),
                                              high_halves(pair[packet]), typename Tr::T{});
                        }
                    } else {
                        ptx::multiply_add(sums, left[tile][0], pair[0], pair[1], typename Tr::T{});
                    }
                }
            }
        }
    }
#pragma unroll
    for (int tile = 0; tile < Tr::kRowTiles; ++tile) {
#pragma unroll
        for (auto& four : scores[tile]) {
#pragma unroll
            for (int index = 0; index < 4; ++index) {
                four[index] *= queries.scale_log2[tile][index / 2];
            }
        }
    }
}

// Masks tokens that a row does not see; the first query of a sequence sees `visible`.
template <class Tr>
__device__ __forceinline__ void mask(const Arguments& a,
                                     float (&scores)[Tr::kRowTiles][Tr::kTokens / 8][4],
                                     int first_row, int visible, int first_token) {
    const int lane = threadIdx.x % 32;
    const int first = first_token + lane % 4 * 2;
#pragma unroll
    for (int tile = 0; tile < Tr::kRowTiles; ++tile) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int row = first_row + tile * kTileRows + half * 8 + lane / 4;
            const int end = visible + min(a.group.quotient(row), a.q_len - 1);
#pragma unroll
            for (int eight = 0; eight < Tr::kTokens / 8; ++eight) {
#pragma unroll
                for (int index = 0; index < 2; ++index) {
                    if (first + eight * 8 + index >= end) {
                        scores[tile][eight][2 * half + index] = -INFINITY;
                    }
                }
            }
        }
    }
}

// Turns scores into weights; the sums are rescaled to a new maximum.
template <class Tr>
__device__ __forceinline__ void weigh(float (&scores)[Tr::kRowTiles][Tr::kTokens / 8][4],
                                      Softmax<Tr>& softmax) {
#pragma unroll
    for (int tile = 0; tile < Tr::kRowTiles; ++tile) {
        float factors[2];
        bool grows = false;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            float top = softmax.largest[tile][half];
#pragma unroll
            for (auto& four : scores[tile])
                top = fmaxf(top, fmaxf(four[2 * half], four[2 * half + 1]));
            top = device::largest_of_four_lanes(top);
            grows = grows || top > softmax.largest[tile][half];
            factors[half] = device::shrink(softmax.largest[tile][half], top);
            softmax.largest[tile][half] = top;
            // A row that has seen nothing: exp(-inf - -inf) would be NaN.
            const float from = top == -INFINITY ? 0.0f : top;
            float total = 0.0f;
#pragma unroll
            for (auto& four : scores[tile]) {
#pragma unroll
                for (int index = 2 * half; index < 2 * half + 2; ++index) {
                    four[index] = ptx::exp2_fast(four[index] - from);
                    total += four[index];
                }
            }
            softmax.total[tile][half] = softmax.total[tile][half] * factors[half] + total;
        }
        if (__any_sync(0xffffffffu, grows)) {
#pragma unroll
            for (auto& four : softmax.sums[tile]) {
#pragma unroll
                for (int index = 0; index < 4; ++index) four[index] *= factors[index / 2];
            }
        }
    }
}

template <class Tr>
__device__ __forceinline__ void multiply_values(
    const float (&weights)[Tr::kRowTiles][Tr::kTokens / 8][4], std::uint32_t values,
    Softmax<Tr>& softmax) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int tokens = 0; tokens < Tr::kTokens / 16; ++tokens) {
        std::uint32_t left[Tr::kRowTiles][4];
#pragma unroll
        for (int tile = 0; tile < Tr::kRowTiles; ++tile) {
#pragma unroll
            for (int word = 0; word < 4; ++word) {
                const float* pair = &weights[tile][2 * tokens + word / 2][word % 2 * 2];
                left[tile][word] = device::pack_pair(pair[0], pair[1], typename Tr::T{});
            }
        }
#pragma unroll
        for (int step = 0; step < Tr::kPackets / 2; ++step) {
            const int row = tokens * 16 + lane / 8 % 2 * 8 + lane % 8;
            std::uint32_t words[4];
            ptx::load_matrices_transposed(words, values + place<Tr>(row, 2 * step + lane / 16));
            if constexpr (Tr::kFp8) {
#pragma unroll
                for (std::uint32_t& word : words) word = dimensions_apart(word);
            }
#pragma unroll
            for (int packet = 0; packet < 2; ++packet) {
                const std::uint32_t first = words[2 * packet], second = words[2 * packet + 1];
#pragma unroll
                for (int tile = 0; tile < Tr::kRowTiles; ++tile) {
                    auto* sums = &softmax.sums[tile][(2 * step + packet) * Tr::kEightsPerPacket];
                    if constexpr (Tr::kFp8) {
                        ptx::multiply_add(sums[0], left[tile], low_halves(first),
                                          low_halves(second), typename Tr::T{});
                        ptx::multiply_add(sums[1], left[tile], high_halves(first),
                                          high_halves(second), typename Tr::T{});
                    } else {
                        ptx::multiply_add(sums[0], left[tile], first, second, typename Tr::T{});
                    }
                }
            }
        }
    }
}

}  // namespace decode::portable
