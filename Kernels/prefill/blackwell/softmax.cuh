// A warpgroup's softmax over the scores of its tile in tensor memory. Lane r of tensor memory, and
// with it thread r of the group, has row r: no thread needs another's numbers.
#pragma once

#include <cstdint>

#include "Kernels/device/convert.cuh"
#include "Kernels/device/exponential.cuh"
#include "Kernels/device/ptx/math.cuh"
#include "Kernels/device/ptx/mbarrier.cuh"
#include "Kernels/device/ptx/registers.cuh"
#include "Kernels/device/ptx/tcgen05.cuh"
#include "Kernels/prefill/blackwell/traits.cuh"

namespace prefill::blackwell {

namespace ptx = device::ptx;

// A quarter of the exponentials are polynomials. The special-function unit has 16 results per
// cycle: at 128 elements per head all of them would take as long as the tensor cores' products.
// They are in the second half of a step, when the registers of the first half's scores are free.
__device__ constexpr bool is_polynomial(int half, int pair) { return half == 1 && pair % 2 == 0; }

struct Row {
    // Maximum score before scaling; the weights are relative to it.
    float largest = -INFINITY;
    float total = 0;
};

// 32 columns at a time, complete on return.
template <int kColumns>
__device__ __forceinline__ void load_columns(std::uint32_t address, float (&values)[kColumns]) {
    std::uint32_t words[kColumns / 32][32];
#pragma unroll
    for (int part = 0; part < kColumns / 32; ++part) {
        ptx::tensor_load(words[part], address + part * 32);
    }
    ptx::tensor_wait_for_loads();
#pragma unroll
    for (int part = 0; part < kColumns / 32; ++part) {
        ptx::pin(words[part]);
#pragma unroll
        for (int i = 0; i < 32; ++i) values[part * 32 + i] = __uint_as_float(words[part][i]);
    }
}

// The sums of the rows so far, which no product is adding to.
template <class Traits>
__device__ __forceinline__ void rescale(std::uint32_t sums, float factor) {
    for (int column = 0; column < Traits::kValueDim; column += 32) {
        float values[32];
        load_columns(sums + column, values);
        std::uint32_t words[32];
#pragma unroll
        for (int i = 0; i < 32; ++i) words[i] = __float_as_uint(values[i] * factor);
        ptx::tensor_store(sums + column, words);
    }
}

// Turns the scores of a step into weights, in their place. Keys from `limit` on are masked. Calls
// `rescale_sums` with a factor where the weights before were relative to another maximum.
template <class Traits, class Rescale>
__device__ __forceinline__ void weigh(const PrefillArguments& arguments, std::uint32_t columns,
                                      int limit, Row& row, const Rescale& rescale_sums) {
    float scores[Traits::kKeys];
    load_columns(columns, scores);
    if (limit < Traits::kKeys) {
#pragma unroll
        for (int key = 0; key < Traits::kKeys; ++key) {
            if (key >= limit) scores[key] = -INFINITY;
        }
    }
    float largest = row.largest;
#pragma unroll
    for (int key = 0; key < Traits::kKeys; ++key) largest = fmaxf(largest, scores[key]);
    const bool lags = (largest - row.largest) * arguments.scale_log2 > kLag;
    if (__any_sync(~0u, lags)) {
        const float factor = ptx::exp2_fast((row.largest - largest) * arguments.scale_log2);
        row.largest = largest;
        row.total *= factor;
        rescale_sums(factor);
    }
    const float reference = row.largest * arguments.scale_log2;
    const float2 scale = {arguments.scale_log2, arguments.scale_log2};
    float2 totals = {row.total, 0.0f};
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        std::uint32_t words[32];
#pragma unroll
        for (int pair = 0; pair < 32; ++pair) {
            const float* two = &scores[half * 64 + pair * 2];
            const float2 powers =
                ptx::multiply_add_pair({two[0], two[1]}, scale, {-reference, -reference});
            const float2 weights = is_polynomial(half, pair)
                                       ? device::exp2_by_polynomial(powers)
                                       : float2{ptx::exp2_fast(powers.x), ptx::exp2_fast(powers.y)};
            totals = ptx::add_pair(totals, weights);
            words[pair] = device::pack_pair(weights.x, weights.y, typename Traits::T{});
        }
        ptx::tensor_store(columns + half * 32, words);
    }
    row.total = totals.x + totals.y;
    ptx::tensor_wait_for_stores();
}

// Writes what is merged with the results of other keys.
template <class Traits>
__device__ __forceinline__ void write_part(const PrefillArguments& arguments, const Piece& piece,
                                           std::uint32_t sums, int row_number, const Row& row) {
    const bool exists = row_number < piece.tile.rows;
    const std::int64_t place =
        std::int64_t{piece.tile.part_row + row_number} * arguments.heads + piece.head;
    auto* out = reinterpret_cast<float4*>(arguments.parts.sums + place * Traits::kValueDim);
    for (int column = 0; column < Traits::kValueDim; column += 32) {
        float values[32];
        load_columns(sums + column, values);
        if (!exists) continue;
#pragma unroll
        for (int packet = 0; packet < 8; ++packet) {
            const float* at = &values[packet * 4];
            out[column / 4 + packet] = {at[0], at[1], at[2], at[3]};
        }
    }
    if (exists) {
        arguments.parts.maxima[place] = {row.largest * arguments.scale_log2, row.total};
    }
}

// Divides the thread's row by its total and writes it.
template <class Traits>
__device__ __forceinline__ void write_row(const PrefillArguments& arguments, const Piece& piece,
                                          std::uint32_t sums, int row_number, const Row& row) {
    const bool exists = row_number < piece.tile.rows;
    const std::int64_t place =
        std::int64_t{piece.tile.first_row + row_number} * arguments.heads + piece.head;
    const float inverse = 1.0f / row.total;
    auto* out = static_cast<uint4*>(arguments.out) + place * (Traits::kValueDim / 8);
    for (int column = 0; column < Traits::kValueDim; column += 32) {
        float values[32];
        load_columns(sums + column, values);
        if (!exists) continue;
#pragma unroll
        for (int packet = 0; packet < 4; ++packet) {
            const auto pair = [&](int i) {
                const float* at = &values[packet * 8 + i];
                return device::pack_pair(at[0] * inverse, at[1] * inverse, typename Traits::T{});
            };
            out[column / 8 + packet] = {pair(0), pair(2), pair(4), pair(6)};
        }
    }
    if (exists && arguments.lse != nullptr) {
        arguments.lse[place] = (row.largest * arguments.scale_log2 + log2f(row.total)) * kLn2;
    }
}

// The softmax of one of the tiles, over all work items.
template <class Traits>
__device__ void soften(const PrefillArguments& arguments, typename Traits::Storage& storage,
                       int tile) {
    const int pieces = arguments.tile_count * arguments.heads;
    const int in_tile = threadIdx.x % 128;
    const int lane = threadIdx.x % 32;
    const std::uint32_t lanes =
        storage.tensor_memory + (static_cast<std::uint32_t>(in_tile / 32 * 32) << 16);
    const std::uint32_t results = lanes + Traits::sums(tile);
    Turns<> queries, items;
    Turns<Traits::kBuffers> scores;
    const auto wait_for_sums = [&](const Slot& slot) {
        ptx::mbarrier_wait(&storage.sums_full[tile][slot.stage], slot.parity);
        ptx::tensor_fence_after_sync();
    };
    while (true) {
        ptx::mbarrier_wait(&storage.queries_full, queries.next().parity);
        // Only the first lane reads it, because only that lane releases the slot.
        const int index = __shfl_sync(~0u, lane == 0 ? storage.piece : 0, 0);
        if (index >= pieces) break;
        if (lane == 0) ptx::mbarrier_arrive(&storage.queries_empty);
        const Piece piece = piece_at(arguments, index);
        const int row_number = tile * Traits::kRows + in_tile;
        // Keys left from a step on, for this row.
        int visible = piece.tile.visible + piece.tile.step * row_number;
        Row row;
        const int steps = piece.steps(tile);
        for (int step = 0; step < steps; ++step, visible -= Traits::kKeys) {
            const Slot slot = scores.next();
            ptx::mbarrier_wait(&storage.scores_full[tile][slot.stage], slot.parity);
            ptx::tensor_fence_after_sync();
            const std::uint32_t columns = lanes + Traits::scores(tile, slot.stage);
            weigh<Traits>(arguments, columns, visible, row, [&](float factor) {
                if (step == 0) return;
                // The scores came after all earlier products, so that nothing is being added to the
                // sums; with two buffers, after all but those of the last step.
                if constexpr (Traits::kBuffers > 1) {
                    wait_for_sums(slot_of<Traits::kBuffers>(scores.count - 2));
                }
                rescale<Traits>(results, factor);
            });
            ptx::tensor_fence_before_sync();
            __syncwarp();
            if (lane == 0) ptx::mbarrier_arrive(&storage.weights_full[tile][slot.stage]);
        }
        if (steps == 0) continue;
        wait_for_sums(Traits::kBuffers > 1 ? slot_of<Traits::kBuffers>(scores.count - 1)
                                           : items.next());
        if (piece.tile.part_row < 0) {
            write_row<Traits>(arguments, piece, results, row_number, row);
        } else {
            write_part<Traits>(arguments, piece, results, row_number, row);
        }
        // Before the next item's first weights, which let products write the sums again.
        ptx::tensor_fence_before_sync();
    }
}

}  // namespace prefill::blackwell
