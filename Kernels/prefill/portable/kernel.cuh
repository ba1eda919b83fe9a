// Prefill with mma.sync, on every architecture.
//
// A block takes one tile of queries of one head and walks over the keys they see, kKeys at a time,
// with an online softmax. Each warp owns 32 queries: two products share every fragment of keys and
// values, or shared memory could not feed the tensor cores. For values of 256, whose sums would
// take every register, it owns 16. Keys and values are double-buffered: the copies into one stage
// run while the other is used, with one barrier per step. Two blocks share an SM, so that one's
// softmax overlaps the other's products.
//
// Shared memory: rows of head_dim or value_dim elements in packets of 16 bytes; packet p of row r
// is stored at p ^ (r % 8), so that eight rows of one packet column hit different banks.
#pragma once

#include <cstdint>

#include "Kernels/device/convert.cuh"
#include "Kernels/device/ptx/cp_async.cuh"
#include "Kernels/device/ptx/math.cuh"
#include "Kernels/device/ptx/mma.cuh"
#include "Kernels/prefill/arguments.cuh"

namespace prefill::portable {

template <class Element, int kHeadDim_, int kRows_, int kKeys_, int kValueDim_>
struct Traits {
    using T = Element;
    static constexpr int kHeadDim = kHeadDim_;
    static constexpr int kValueDim = kValueDim_;
    static constexpr int kRows = kRows_;
    static constexpr int kKeys = kKeys_;
    static constexpr int kBlocksPerMultiprocessor = 2;
    static constexpr int kWarpRows = kValueDim > 128 ? 16 : 32;
    static constexpr int kWarps = kRows / kWarpRows;
    static constexpr int kThreads = 32 * kWarps;
    static constexpr int kRowBytes = kHeadDim * 2;
    static constexpr int kValueBytes = kValueDim * 2;
    static constexpr int kValuePackets = kValueBytes / 16;
    static constexpr int kStages = 2;
    // 16 x 8 x 16 products along each side.
    static constexpr int kRowParts = kWarpRows / 16;
    static constexpr int kKeyParts = kKeys / 8;
    static constexpr int kDimParts = kValueDim / 8;
    // Only for the small head do the queries' fragments fit in registers beside the sums.
    static constexpr bool kQueriesInRegisters = kHeadDim == 64;

    static_assert(kHeadDim % 64 == 0 && kHeadDim >= kValueDim,
                  "outputs are staged in the rows of their queries");
    static_assert(32 % kValuePackets == 0, "a warp writes whole rows");
    static_assert(kKeys % 16 == 0, "keys go through the tensor cores 16 at a time");

    struct Storage {
        alignas(1024) unsigned char queries[kRows * kRowBytes];
        unsigned char keys[kStages][kKeys * kRowBytes];
        unsigned char values[kStages][kKeys * kValueBytes];
    };
};

// Copies `count` rows of so many bytes, with zeros at and after `valid`.
template <class Traits, int kCount, int kRowBytes>
__device__ __forceinline__ void copy_rows(uint32_t shared, const unsigned char* global,
                                          std::int64_t row_stride_bytes, int valid) {
    // Neighbouring threads copy 256 bytes of a row, or 128 where that leaves a part.
    constexpr int kPackets = kRowBytes % 256 == 0 ? 16 : 8;
    constexpr int kRowsAtOnce = Traits::kThreads / kPackets;
    static_assert(kRowsAtOnce % 8 == 0, "all of a thread's rows must have the same swizzle");
    static_assert(kCount % kRowsAtOnce == 0, "every thread copies the same number of packets");
    const int packet = threadIdx.x % kPackets;
    const int first = threadIdx.x / kPackets;
    const uint32_t to = shared + first * kRowBytes + (packet ^ (first % 8)) * 16;
    const unsigned char* from = global + first * row_stride_bytes + packet * 16;
#pragma unroll
    for (int row = 0; row < kCount; row += kRowsAtOnce) {
        const bool is_valid = first + row < valid;
#pragma unroll
        for (int column = 0; column < kRowBytes; column += kPackets * 16) {
            device::ptx::copy_async_16_or_zero(
                to + row * kRowBytes + column,
                is_valid ? from + row * row_stride_bytes + column : global, is_valid);
        }
    }
}

// The address of a lane's packet 32 bytes times `step` further along its row: the swizzle is within
// 128 bytes, of which rows are multiples.
__device__ __forceinline__ uint32_t along(uint32_t address, int step) {
    return (address ^ (step % 4 * 32)) + step / 4 * 128;
}

// The state of a warp's queries as they walk over the keys. In each 16 x 8 part a lane holds two
// neighbours in row lane / 4 and two in row lane / 4 + 8.
template <class Traits>
struct WarpRows {
    float sums[Traits::kRowParts][Traits::kDimParts][4];
    // Maximum score before scaling; the weights are relative to it.
    float largest[Traits::kRowParts][2];
    // This lane's share of the sums of weights.
    float total[Traits::kRowParts][2];
};

template <class Traits>
using Scores = float[Traits::kRowParts][Traits::kKeyParts][4];

template <class Traits>
struct QueryFragments {
    uint32_t parts[Traits::kQueriesInRegisters ? Traits::kHeadDim / 16 : 1][Traits::kRowParts][4];
};

template <class Traits>
__device__ __forceinline__ void load_queries(uint32_t (&parts)[Traits::kRowParts][4],
                                             uint32_t queries, int step) {
#pragma unroll
    for (int row_part = 0; row_part < Traits::kRowParts; ++row_part) {
        device::ptx::load_matrices(parts[row_part],
                                   along(queries, step) + row_part * 16 * Traits::kRowBytes);
    }
}

// scores = queries . keys^T. The addresses are of this lane's rows in the first fragment.
template <class Traits>
__device__ __forceinline__ void multiply_keys(Scores<Traits>& scores,
                                              const QueryFragments<Traits>& fragments,
                                              uint32_t queries, uint32_t keys) {
    using T = typename Traits::T;
#pragma unroll
    for (int row_part = 0; row_part < Traits::kRowParts; ++row_part) {
#pragma unroll
        for (int key_part = 0; key_part < Traits::kKeyParts; ++key_part) {
#pragma unroll
            for (int index = 0; index < 4; ++index) scores[row_part][key_part][index] = 0.0f;
        }
    }
#pragma unroll
    for (int step = 0; step < Traits::kHeadDim / 16; ++step) {
        uint32_t loaded[Traits::kRowParts][4];
        if constexpr (!Traits::kQueriesInRegisters) load_queries<Traits>(loaded, queries, step);
        const auto& a = Traits::kQueriesInRegisters
                            ? fragments.parts[Traits::kQueriesInRegisters ? step : 0]
                            : loaded;
#pragma unroll
        for (int pair = 0; pair < Traits::kKeyParts / 2; ++pair) {
            uint32_t b[4];
            device::ptx::load_matrices(b, along(keys, step) + pair * 16 * Traits::kRowBytes);
#pragma unroll
            for (int row_part = 0; row_part < Traits::kRowParts; ++row_part) {
                device::ptx::multiply_add(scores[row_part][2 * pair], a[row_part], b[0], b[1], T{});
                device::ptx::multiply_add(scores[row_part][2 * pair + 1], a[row_part], b[2], b[3],
                                          T{});
            }
        }
    }
}

// Masks keys at and after a query's limit. `limit` counts from the step's first key for this lane's
// first row.
template <class Traits>
__device__ __forceinline__ void mask(Scores<Traits>& scores, int limit, int step) {
    const int column = threadIdx.x % 4 * 2;
#pragma unroll
    for (int row_part = 0; row_part < Traits::kRowParts; ++row_part) {
#pragma unroll
        for (int key_part = 0; key_part < Traits::kKeyParts; ++key_part) {
#pragma unroll
            for (int index = 0; index < 4; ++index) {
                const int row = row_part * 16 + index / 2 * 8;
                const int key = key_part * 8 + column + index % 2;
                if (key >= limit + step * row) scores[row_part][key_part][index] = -INFINITY;
            }
        }
    }
}

__device__ __forceinline__ float quad_max(float value) {
    value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, 1));
    return fmaxf(value, __shfl_xor_sync(0xffffffffu, value, 2));
}

__device__ __forceinline__ float quad_sum(float value) {
    value += __shfl_xor_sync(0xffffffffu, value, 1);
    return value + __shfl_xor_sync(0xffffffffu, value, 2);
}

// Turns scores into weights relative to `largest`, which is updated if it lags too far.
template <class Traits>
__device__ __forceinline__ void weigh(Scores<Traits>& scores, WarpRows<Traits>& rows,
                                      float scale_log2) {
    float largest[Traits::kRowParts][2];
    bool lags = false;
#pragma unroll
    for (int row_part = 0; row_part < Traits::kRowParts; ++row_part) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            float most = -INFINITY;
#pragma unroll
            for (int key_part = 0; key_part < Traits::kKeyParts; ++key_part) {
                most = fmaxf(most, fmaxf(scores[row_part][key_part][2 * half],
                                         scores[row_part][key_part][2 * half + 1]));
            }
            largest[row_part][half] = quad_max(most);
            const float ahead = largest[row_part][half] - rows.largest[row_part][half];
            lags = lags || ahead * scale_log2 > kLag;
        }
    }
    if (__any_sync(0xffffffffu, lags)) {
#pragma unroll
        for (int row_part = 0; row_part < Traits::kRowParts; ++row_part) {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                float& reference = rows.largest[row_part][half];
                const float moved = fmaxf(reference, largest[row_part][half]);
                const float factor = device::ptx::exp2_fast((reference - moved) * scale_log2);
                reference = moved;
                rows.total[row_part][half] *= factor;
#pragma unroll
                for (int dim_part = 0; dim_part < Traits::kDimParts; ++dim_part) {
                    rows.sums[row_part][dim_part][2 * half] *= factor;
                    rows.sums[row_part][dim_part][2 * half + 1] *= factor;
                }
            }
        }
    }
#pragma unroll
    for (int row_part = 0; row_part < Traits::kRowParts; ++row_part) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const float reference = rows.largest[row_part][half] * scale_log2;
            float total = 0.0f;
#pragma unroll
            for (int key_part = 0; key_part < Traits::kKeyParts; ++key_part) {
#pragma unroll
                for (int index = 2 * half; index < 2 * half + 2; ++index) {
                    float& score = scores[row_part][key_part][index];
                    score = device::ptx::exp2_fast(fmaf(score, scale_log2, -reference));
                    total += score;
                }
            }
            rows.total[row_part][half] += total;
        }
    }
}

// sums += weights . values. The address is of this lane's row in the first fragment.
template <class Traits>
__device__ __forceinline__ void multiply_values(WarpRows<Traits>& rows,
                                                const Scores<Traits>& weights, uint32_t values) {
    using T = typename Traits::T;
#pragma unroll
    for (int step = 0; step < Traits::kKeys / 16; ++step) {
        uint32_t a[Traits::kRowParts][4];
#pragma unroll
        for (int row_part = 0; row_part < Traits::kRowParts; ++row_part) {
#pragma unroll
            for (int index = 0; index < 4; ++index) {
                const auto& part = weights[row_part][2 * step + index / 2];
                const int first = index % 2 * 2;
                a[row_part][index] = device::pack_pair(part[first], part[first + 1], T{});
            }
        }
#pragma unroll
        for (int pair = 0; pair < Traits::kDimParts / 2; ++pair) {
            uint32_t b[4];
            device::ptx::load_matrices_transposed(
                b, along(values, pair) + step * 16 * Traits::kValueBytes);
#pragma unroll
            for (int row_part = 0; row_part < Traits::kRowParts; ++row_part) {
                device::ptx::multiply_add(rows.sums[row_part][2 * pair], a[row_part], b[0], b[1],
                                          T{});
                device::ptx::multiply_add(rows.sums[row_part][2 * pair + 1], a[row_part], b[2],
                                          b[3], T{});
            }
        }
    }
}

// Divides by the sums of weights and writes outputs through the shared memory of the warp's own
// queries, so that rows are written in whole packets.
template <class Traits>
__device__ __forceinline__ void finish(WarpRows<Traits>& rows, unsigned char* staging,
                                       const PrefillArguments& arguments, const Tile& tile,
                                       int head, int first_row) {
    using T = typename Traits::T;
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int row_part = 0; row_part < Traits::kRowParts; ++row_part) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int row = row_part * 16 + half * 8 + lane / 4;
            const float total = quad_sum(rows.total[row_part][half]);
            const float inverse = 1.0f / total;
#pragma unroll
            for (int dim_part = 0; dim_part < Traits::kDimParts; ++dim_part) {
                const auto& sums = rows.sums[row_part][dim_part];
                const uint32_t pair =
                    device::pack_pair(sums[2 * half] * inverse, sums[2 * half + 1] * inverse, T{});
                const int place = row * Traits::kValueBytes + (dim_part ^ (row % 8)) * 16;
                *reinterpret_cast<uint32_t*>(staging + place + lane % 4 * 4) = pair;
            }
            if (arguments.lse != nullptr && lane % 4 == 0 && first_row + row < tile.rows) {
                const std::int64_t place =
                    std::int64_t{tile.first_row + first_row + row} * arguments.heads + head;
                const float reference = rows.largest[row_part][half] * arguments.scale_log2;
                arguments.lse[place] = (reference + log2f(total)) * kLn2;
            }
        }
    }
    // All lanes' pairs are written before whole packets are read.
    __syncwarp();
    constexpr int kRowsAtOnce = 32 / Traits::kValuePackets;
    const int packet = lane % Traits::kValuePackets;
#pragma unroll
    for (int index = 0; index < Traits::kWarpRows / kRowsAtOnce; ++index) {
        const int row = index * kRowsAtOnce + lane / Traits::kValuePackets;
        if (first_row + row < tile.rows) {
            const std::int64_t place =
                std::int64_t{tile.first_row + first_row + row} * arguments.heads + head;
            unsigned char* out = static_cast<unsigned char*>(arguments.out);
            *reinterpret_cast<uint4*>(out + place * Traits::kValueBytes + packet * 16) =
                *reinterpret_cast<const uint4*>(staging + row * Traits::kValueBytes +
                                                (packet ^ (row % 8)) * 16);
        }
    }
}

template <class Traits>
__global__ void __launch_bounds__(Traits::kThreads, Traits::kBlocksPerMultiprocessor)
    prefill_kernel(const __grid_constant__ PrefillArguments arguments) {
    extern __shared__ unsigned char shared[];
    auto& storage = *reinterpret_cast<typename Traits::Storage*>(shared);
    const unsigned tile_index = blockIdx.x / arguments.heads;
    const int head = blockIdx.x - tile_index * arguments.heads;
    const Tile tile = arguments.tiles[tile_index];
    const int kv_head = head / arguments.group;
    const int lane = threadIdx.x % 32;
    const int first_row = threadIdx.x / 32 * Traits::kWarpRows;

    const std::int64_t q_stride = std::int64_t{arguments.heads} * Traits::kRowBytes;
    const std::int64_t k_stride = std::int64_t{arguments.kv_heads} * Traits::kRowBytes;
    const std::int64_t v_stride = std::int64_t{arguments.kv_heads} * Traits::kValueBytes;
    const auto* q = static_cast<const unsigned char*>(arguments.q) + tile.first_row * q_stride +
                    head * Traits::kRowBytes;
    const auto* k = static_cast<const unsigned char*>(arguments.k) + tile.first_key * k_stride +
                    kv_head * Traits::kRowBytes;
    const auto* v = static_cast<const unsigned char*>(arguments.v) + tile.first_key * v_stride +
                    kv_head * Traits::kValueBytes;

    // Keys seen by the last query of the tile and of the warp; none for a warp without queries.
    const int seen = tile.seen();
    const int last_row = min(first_row + Traits::kWarpRows, tile.rows) - 1;
    const int warp_seen = first_row < tile.rows ? tile.visible + tile.step * last_row : 0;
    const int steps = (seen + Traits::kKeys - 1) / Traits::kKeys;

    const auto copy_step = [&](int step, int stage) {
        const int first_key = step * Traits::kKeys;
        copy_rows<Traits, Traits::kKeys, Traits::kRowBytes>(
            device::ptx::shared_address(storage.keys[stage]), k + first_key * k_stride, k_stride,
            seen - first_key);
        copy_rows<Traits, Traits::kKeys, Traits::kValueBytes>(
            device::ptx::shared_address(storage.values[stage]), v + first_key * v_stride, v_stride,
            seen - first_key);
    };
    copy_rows<Traits, Traits::kRows, Traits::kRowBytes>(
        device::ptx::shared_address(storage.queries), q, q_stride, tile.rows);
    copy_step(0, 0);
    device::ptx::commit_copies();

    // This lane's rows in the fragments: for queries and values, row lane % 16, with lanes above 16
    // one packet further; for keys, 8 rows in two packets, then the next 8.
    const uint32_t swizzle = lane % 8;
    const uint32_t queries = device::ptx::shared_address(storage.queries) +
                             (first_row + lane % 16) * Traits::kRowBytes +
                             ((lane / 16) ^ swizzle) * 16;
    const uint32_t key_lane =
        (lane % 8 + lane / 16 * 8) * Traits::kRowBytes + ((lane / 8 % 2) ^ swizzle) * 16;
    const uint32_t value_lane = lane % 16 * Traits::kValueBytes + ((lane / 16) ^ swizzle) * 16;

    WarpRows<Traits> rows;
#pragma unroll
    for (int row_part = 0; row_part < Traits::kRowParts; ++row_part) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            rows.largest[row_part][half] = -INFINITY;
            rows.total[row_part][half] = 0.0f;
        }
#pragma unroll
        for (int dim_part = 0; dim_part < Traits::kDimParts; ++dim_part) {
#pragma unroll
            for (int index = 0; index < 4; ++index) rows.sums[row_part][dim_part][index] = 0.0f;
        }
    }
    QueryFragments<Traits> fragments;

    for (int step = 0; step < steps; ++step) {
        const int stage = step % 2;
        device::ptx::wait_for_copies<0>();
        // All copies of this step complete before its reads, and all reads of the other stage
        // before the copies that overwrite it.
        __syncthreads();
        if (step + 1 < steps) copy_step(step + 1, stage ^ 1);
        device::ptx::commit_copies();
        if constexpr (Traits::kQueriesInRegisters) {
            if (step == 0) {
#pragma unroll
                for (int part = 0; part < Traits::kHeadDim / 16; ++part) {
                    load_queries<Traits>(fragments.parts[part], queries, part);
                }
            }
        }
        const int first_key = step * Traits::kKeys;
        if (first_key >= warp_seen) continue;
        Scores<Traits> scores;
        multiply_keys<Traits>(scores, fragments, queries,
                              device::ptx::shared_address(storage.keys[stage]) + key_lane);
        const int first_row_sees = tile.visible + tile.step * first_row - first_key;
        if (first_row_sees < Traits::kKeys) {
            mask<Traits>(scores, first_row_sees + tile.step * (lane / 4), tile.step);
        }
        weigh<Traits>(scores, rows, arguments.scale_log2);
        multiply_values<Traits>(rows, scores,
                                device::ptx::shared_address(storage.values[stage]) + value_lane);
    }
    if (first_row < tile.rows) {
        finish<Traits>(rows, storage.queries + first_row * Traits::kRowBytes, arguments, tile, head,
                       first_row);
    }
}

}  // namespace prefill::portable
