// A warp's work on one tile: scores, weights, sums.
//
// One packet of a row of FP8, 16 elements, covers one product's depth, but a lane gets four
// consecutive elements where 16-bit operands have two and two. So the depth of the scores is
// permuted: a lane's words 0 and 2 of the queries hold elements 4 pair to 4 pair + 3 of a packet,
// as its keys do. For the values, a lane gets two dimensions of two tokens per word: the even
// dimensions of a packet become columns of one product, the odd ones of the next.
#pragma once

#include <cstdint>

#include "Kernels/device/convert.cuh"
#include "Kernels/device/ptx/mma.cuh"
#include "Kernels/device/ptx/named_barrier.cuh"
#include "Kernels/device/softmax_rows.cuh"
#include "Kernels/mla/codes.cuh"
#include "Kernels/mla/portable/loader.cuh"

namespace mla::portable {

// The queries of a block, in registers or in shared memory.
template <class Tr, bool kShared = Tr::kQueriesShared>
struct Queries;

template <class Tr>
struct Queries<Tr, false> {
    std::uint32_t words[kSteps][4];

    __device__ void load(const Arguments& a, SharedStorage<Tr>&, int sequence, int first_row) {
        const int lane = threadIdx.x % 32;
        const int warp_row = Tr::warp_row();
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const std::int64_t row =
                query_row(a, sequence, first_row + warp_row * kTileRows + half * 8 + lane / 4);
            const auto* query = static_cast<const std::uint32_t*>(a.q) + row * (kWidth / 2);
#pragma unroll
            for (int step = 0; step < kSteps; ++step) {
                const auto* from = query + step * 8;
                if constexpr (Tr::kFp8) {
                    const uint2 four = __ldg(reinterpret_cast<const uint2*>(from) + lane % 4);
                    words[step][half] = four.x;
                    words[step][half + 2] = four.y;
                } else {
                    words[step][half] = __ldg(from + lane % 4);
                    words[step][half + 2] = __ldg(from + 4 + lane % 4);
                }
            }
        }
    }

    __device__ void operand(int step, std::uint32_t (&left)[Tr::kRowTiles][4]) const {
#pragma unroll
        for (int word = 0; word < 4; ++word) left[0][word] = words[step][word];
    }
};

template <class Tr>
struct Queries<Tr, true> {
    std::uint32_t rows;

    __device__ void load(const Arguments& a, SharedStorage<Tr>& shared, int sequence,
                         int first_row) {
        // Nobody still multiplies the previous segment's queries.
        __syncthreads();
        for (int index = threadIdx.x; index < Tr::kRows * kSteps; index += Tr::kThreads) {
            const int row = index / kSteps;
            const int packet = index % kSteps * 2;
            const std::int64_t from = query_row(a, sequence, first_row + row);
            const auto* query = static_cast<const uint4*>(a.q) + from * kQueryPackets + packet;
            uint4 first = __ldg(query), second = __ldg(query + 1);
            if constexpr (Tr::kFp8) {
                const uint4 low = first, high = second;
                first = {low.x, low.z, high.x, high.z};
                second = {low.y, low.w, high.y, high.w};
            }
            *reinterpret_cast<uint4*>(shared.queries + place<Tr::kRows>(row, packet)) = first;
            *reinterpret_cast<uint4*>(shared.queries + place<Tr::kRows>(row, packet + 1)) = second;
        }
        // The first tile's barrier orders these stores before the products.
        rows = ptx::shared_address(shared.queries);
    }

    __device__ void operand(int step, std::uint32_t (&left)[Tr::kRowTiles][4]) const {
        const int lane = threadIdx.x % 32;
        const int warp_row = Tr::warp_row();
#pragma unroll
        for (int tile = 0; tile < Tr::kRowTiles; ++tile) {
            const int row = (warp_row * Tr::kRowTiles + tile) * kTileRows + lane % 16;
            ptx::load_matrices(left[tile], rows + place<Tr::kRows>(row, 2 * step + lane / 16));
        }
    }
};

// A warp's state for its rows of a segment. A lane holds rows quad and quad + 8 of a tile.
template <class Tr>
struct Softmax {
    // Of eight dimensions each, in order; over FP8, of the even ones of 16, then the odd ones.
    float sums[Tr::kRowTiles][Tr::kWarpDims / 8][4];
    float largest[Tr::kRowTiles][2];
    // Over this warp's tokens only.
    float total[Tr::kRowTiles][2];
    // Positions visible to the row.
    int visible[Tr::kRowTiles][2];

    __device__ static int row_in_block(int tile, int half) {
        const int warp_row = Tr::warp_row();
        return (warp_row * Tr::kRowTiles + tile) * kTileRows + half * 8 + threadIdx.x % 32 / 4;
    }

    // The sums of one row's dimensions that follow each other, two or four.
    template <int kRun>
    __device__ void run_of(int tile, int half, int run, float (&out)[kRun]) const {
        static_assert(kRun == (Tr::kFp8 ? 4 : 2), "as the products leave them");
#pragma unroll
        for (int index = 0; index < kRun; ++index) {
            const int eight = Tr::kFp8 ? 2 * run + index % 2 : run;
            out[index] = sums[tile][eight][2 * half + (Tr::kFp8 ? index / 2 : index)];
        }
    }

    __device__ void start(const Arguments& a, const Segment& segment, int first_row) {
#pragma unroll
        for (int tile = 0; tile < Tr::kRowTiles; ++tile) {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const int row = first_row + row_in_block(tile, half);
                const int query = min(row / a.heads, a.q_len - 1);
                visible[tile][half] = segment.length - a.q_len + 1 + query;
                largest[tile][half] = -INFINITY;
                total[tile][half] = 0.0f;
            }
#pragma unroll
            for (auto& sum : sums[tile]) sum[0] = sum[1] = sum[2] = sum[3] = 0.0f;
        }
    }
};

template <class Tr>
using Scores = float[Tr::kRowTiles][Tr::kWarpTokens / 8][4];

// Scores of this warp's rows and tokens, in base 2.
template <class Tr>
__device__ __forceinline__ void multiply_keys(const Queries<Tr>& queries, std::uint32_t keys,
                                              Scores<Tr>& scores, float scale_log2) {
    const int lane = threadIdx.x % 32;
    const int first = Tr::warp_column() * Tr::kWarpTokens;
#pragma unroll
    for (auto& tile : scores) {
#pragma unroll
        for (auto& four : tile) four[0] = four[1] = four[2] = four[3] = 0.0f;
    }
    // Products of eight tokens alternate between two accumulators: a shorter dependency chain.
    Scores<Tr> other = {};
    if constexpr (Tr::kFp8) {
        // A packet is a step. One load has two steps of 16 tokens, or four of eight.
        constexpr int kEights = Tr::kWarpTokens / 8;
        constexpr int kLoadSteps = 4 / kEights;
        static_assert(kSteps % kLoadSteps == 0, "whole loads");
#pragma unroll
        for (int step = 0; step < kSteps; step += kLoadSteps) {
            const int row = first + lane / 8 / kLoadSteps * 8 + lane % 8;
            std::uint32_t words[4];
            ptx::load_matrices(words, keys + cache_place<Tr>(row, step + lane / 8 % kLoadSteps));
#pragma unroll
            for (int part = 0; part < kLoadSteps; ++part) {
                std::uint32_t left[Tr::kRowTiles][4];
                queries.operand(step + part, left);
#pragma unroll
                for (int eight = 0; eight < kEights; ++eight) {
                    const std::uint32_t word = words[eight * kLoadSteps + part];
                    const std::uint32_t low = low_pair(word, typename Tr::T{});
                    const std::uint32_t high = high_pair(word, typename Tr::T{});
#pragma unroll
                    for (int tile = 0; tile < Tr::kRowTiles; ++tile) {
                        auto& sums = kEights == 1 && part % 2 == 1 ? other : scores;
                        ptx::multiply_add(sums[tile][eight], left[tile], low, high,
                                          typename Tr::T{});
                    }
                }
            }
        }
    } else if constexpr (Tr::kWarpTokens == 16) {
#pragma unroll
        for (int step = 0; step < kSteps; ++step) {
            std::uint32_t left[Tr::kRowTiles][4], right[4];
            queries.operand(step, left);
            const int row = first + lane / 16 * 8 + lane % 8;
            ptx::load_matrices(right, keys + cache_place<Tr>(row, 2 * step + lane / 8 % 2));
#pragma unroll
            for (int tile = 0; tile < Tr::kRowTiles; ++tile) {
                ptx::multiply_add(scores[tile][0], left[tile], right[0], right[1],
                                  typename Tr::T{});
                ptx::multiply_add(scores[tile][1], left[tile], right[2], right[3],
                                  typename Tr::T{});
            }
        }
    } else {
        // Eight tokens: one load serves two steps.
#pragma unroll
        for (int step = 0; step < kSteps; step += 2) {
            std::uint32_t left[Tr::kRowTiles][4], right[4];
            ptx::load_matrices(right,
                               keys + cache_place<Tr>(first + lane % 8, 2 * step + lane / 8));
            queries.operand(step, left);
#pragma unroll
            for (int tile = 0; tile < Tr::kRowTiles; ++tile) {
                ptx::multiply_add(scores[tile][0], left[tile], right[0], right[1],
                                  typename Tr::T{});
            }
            queries.operand(step + 1, left);
#pragma unroll
            for (int tile = 0; tile < Tr::kRowTiles; ++tile) {
                ptx::multiply_add(other[tile][0], left[tile], right[2], right[3], typename Tr::T{});
            }
        }
    }
    if constexpr (Tr::kWarpTokens == 8) {
#pragma unroll
        for (int tile = 0; tile < Tr::kRowTiles; ++tile) {
#pragma unroll
            for (int index = 0; index < 4; ++index) scores[tile][0][index] += other[tile][0][index];
        }
    }
#pragma unroll
    for (auto& tile : scores) {
#pragma unroll
        for (auto& four : tile) {
#pragma unroll
            for (float& score : four) score *= scale_log2;
        }
    }
}

template <class Tr>
__device__ __forceinline__ void mask(Scores<Tr>& scores, const Softmax<Tr>& softmax,
                                     int first_token) {
    const int column = Tr::warp_column() * Tr::kWarpTokens;
    const int first = first_token + column + threadIdx.x % 4 * 2;
#pragma unroll
    for (int tile = 0; tile < Tr::kRowTiles; ++tile) {
#pragma unroll
        for (int eight = 0; eight < Tr::kWarpTokens / 8; ++eight) {
#pragma unroll
            for (int index = 0; index < 4; ++index) {
                const int token = first + eight * 8 + index % 2;
                if (token >= softmax.visible[tile][index / 2]) {
                    scores[tile][eight][index] = -INFINITY;
                }
            }
        }
    }
}

// A barrier across the warps that share rows; 0 is __syncthreads.
template <class Tr>
__device__ __forceinline__ void sync_row_of_warps() {
    if constexpr (Tr::kWarpRows == 1) {
        __syncthreads();
    } else {
        ptx::named_barrier_sync(1 + Tr::warp_row(), 32 * Tr::kWarpColumns);
    }
}

// Turns scores into weights in shared memory; the sums are rescaled to a new maximum.
template <class Tr>
__device__ __forceinline__ void weigh(SharedStorage<Tr>& shared, Scores<Tr>& scores,
                                      Softmax<Tr>& softmax) {
    const int lane = threadIdx.x % 32;
    const int column = Tr::warp_column();
#pragma unroll
    for (int tile = 0; tile < Tr::kRowTiles; ++tile) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            float top = -INFINITY;
#pragma unroll
            for (auto& four : scores[tile]) {
                top = fmaxf(top, fmaxf(four[2 * half], four[2 * half + 1]));
            }
            top = device::largest_of_four_lanes(top);
            if (lane % 4 == 0) shared.exchange[Softmax<Tr>::row_in_block(tile, half)][column] = top;
        }
    }
    // The maxima over the other tokens are written before they are read.
    sync_row_of_warps<Tr>();
#pragma unroll
    for (int tile = 0; tile < Tr::kRowTiles; ++tile) {
        float factors[2];
        bool grows = false;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int row = Softmax<Tr>::row_in_block(tile, half);
            float top = softmax.largest[tile][half];
#pragma unroll
            for (int other = 0; other < Tr::kWarpColumns; ++other) {
                top = fmaxf(top, shared.exchange[row][other]);
            }
            grows = grows || top > softmax.largest[tile][half];
            factors[half] = device::shrink(softmax.largest[tile][half], top);
            softmax.largest[tile][half] = top;
            // A row that has seen nothing: exp(-inf - -inf) would be NaN.
            const float from = top == -INFINITY ? 0.0f : top;
            float total = 0.0f;
#pragma unroll
            for (int eight = 0; eight < Tr::kWarpTokens / 8; ++eight) {
                const float first = ptx::exp2_fast(scores[tile][eight][2 * half] - from);
                const float second = ptx::exp2_fast(scores[tile][eight][2 * half + 1] - from);
                total += first + second;
                const int packet = (column * Tr::kWarpTokens + eight * 8) / 8;
                *reinterpret_cast<std::uint32_t*>(shared.weights + weight_place<Tr>(row, packet) +
                                                  lane % 4 * 4) =
                    device::pack_pair(first, second, typename Tr::T{});
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
    // The weights of all tokens are written before the sums read them.
    sync_row_of_warps<Tr>();
}

// From two dimensions of each of two tokens to two tokens of each of two dimensions.
__device__ __forceinline__ std::uint32_t dimensions_apart(std::uint32_t word) {
    return __byte_perm(word, 0, 0x3120);
}

// Adds one packet of FP8 values of 16 tokens: its even dimensions to the sums of `place`, its odd
// ones to those after.
template <class Tr>
__device__ __forceinline__ void multiply_codes(const std::uint32_t (&left)[Tr::kRowTiles][4],
                                               std::uint32_t first, std::uint32_t second, int place,
                                               Softmax<Tr>& softmax) {
    const typename Tr::T type = {};
    const std::uint32_t even[2] = {low_pair(first, type), low_pair(second, type)};
    const std::uint32_t odd[2] = {high_pair(first, type), high_pair(second, type)};
#pragma unroll
    for (int tile = 0; tile < Tr::kRowTiles; ++tile) {
        ptx::multiply_add(softmax.sums[tile][place], left[tile], even[0], even[1], type);
        ptx::multiply_add(softmax.sums[tile][place + 1], left[tile], odd[0], odd[1], type);
    }
}

// Sums of this warp's rows and dimensions over all tokens of the tile.
template <class Tr>
__device__ __forceinline__ void multiply_values(std::uint32_t weights, std::uint32_t values,
                                                Softmax<Tr>& softmax) {
    const int lane = threadIdx.x % 32;
    const int warp = threadIdx.x / 32;
    // Of the warp's dimensions.
    constexpr int kPackets = Tr::kWarpDims / Tr::kPerPacket;
    const int first_packet = warp % Tr::kWarpColumns * kPackets;
#pragma unroll
    for (int tokens = 0; tokens < Tr::kTokens / 16; ++tokens) {
        std::uint32_t left[Tr::kRowTiles][4];
#pragma unroll
        for (int tile = 0; tile < Tr::kRowTiles; ++tile) {
            const int row =
                (warp / Tr::kWarpColumns * Tr::kRowTiles + tile) * kTileRows + lane % 16;
            ptx::load_matrices(left[tile], weights + weight_place<Tr>(row, 2 * tokens + lane / 16));
        }
#pragma unroll
        for (int step = 0; step < kPackets / 2; ++step) {
            const int row = tokens * 16 + lane / 8 % 2 * 8 + lane % 8;
            std::uint32_t right[4];
            ptx::load_matrices_transposed(
                right, values + cache_place<Tr>(row, first_packet + 2 * step + lane / 16));
            if constexpr (Tr::kFp8) {
#pragma unroll
                for (int packet = 0; packet < 2; ++packet) {
                    multiply_codes<Tr>(left, dimensions_apart(right[2 * packet]),
                                       dimensions_apart(right[2 * packet + 1]),
                                       2 * (2 * step + packet), softmax);
                }
            } else {
#pragma unroll
                for (int tile = 0; tile < Tr::kRowTiles; ++tile) {
                    ptx::multiply_add(softmax.sums[tile][2 * step], left[tile], right[0], right[1],
                                      typename Tr::T{});
                    ptx::multiply_add(softmax.sums[tile][2 * step + 1], left[tile], right[2],
                                      right[3], typename Tr::T{});
                }
            }
        }
    }
}

}  // namespace mla::portable
