// Prefill for Blackwell: tcgen05 fed by TMA, scores, weights and sums in tensor memory.
//
// A persistent kernel: one block per SM takes work items, one or two tiles of 128 queries of one
// head, until none is left. One thread draws items from a counter and copies queries, keys and
// values; one multiplies; a warpgroup per tile turns scores into weights. While one tile's softmax
// runs, the tensor cores work for the other.
//
// A tile's products alternate: sums += weights . values of a step, then the scores of the next step
// over the same columns of tensor memory. Products of a thread complete in order, so that whoever
// sees new scores may also change the sums: that is how they are rescaled, on the rare occasion
// that a row's maximum grows by much.
//
// Heads of 256 have one tile, since the sums of two would be all of tensor memory. Its scores have
// two buffers instead: those of the next step come before the sums of this one, so that the tensor
// cores have work during the softmax. Whoever rescales then waits for the sums of the step before.
// It reads keys and values twice as often as two tiles would; two with half of the values' width at
// a time would compute all scores twice.
//
// Shared memory has two stages of keys and two of values, a step each where heads are small: with
// queries 192 KiB for heads of 128. Of larger heads a stage has half a step, so that the next half
// is copied while one is multiplied: half of the values of 192 and 128 (96 + 2 * 48 + 2 * 16 KiB),
// half of keys and values of 256 (64 + 2 * 32 + 2 * 32 KiB). Halves are of a product's depth: half
// of the keys' elements, half of the values' rows. Steps of 64 keys would fit too, but products so
// narrow read the queries twice as often and wait for shared memory.
#pragma once

#include <cstdint>

#include "Kernels/device/ptx/mbarrier.cuh"
#include "Kernels/device/ptx/registers.cuh"
#include "Kernels/device/ptx/tcgen05.cuh"
#include "Kernels/device/ptx/tma.cuh"
#include "Kernels/prefill/blackwell/softmax.cuh"
#include "Kernels/prefill/blackwell/traits.cuh"
#include "Kernels/prefill/packed_map.cuh"

namespace prefill::blackwell {

template <class Traits>
__device__ void copy(typename Traits::Storage& storage, const Maps& maps,
                     const PrefillArguments& arguments) {
    const int pieces = arguments.tile_count * arguments.heads;
    unsigned first = 0;  // step of the item, counted over all items
    int index = blockIdx.x;
    for (unsigned turn = 0;; ++turn) {
        ptx::mbarrier_wait(&storage.queries_empty, (turn & 1) ^ 1);
        storage.piece = index;
        if (index >= pieces) {
            ptx::mbarrier_arrive(&storage.queries_full);
            break;
        }
        const Piece piece = piece_at(arguments, index);
        const Tile& tile = piece.tile;
        const int kv_head = piece.head / arguments.group;
        const int tiles = Traits::kTiles > 1 && piece.rows_of(1) > 0 ? 2 : 1;
        ptx::mbarrier_expect_bytes(&storage.queries_full,
                                   tiles * Traits::kBoxes * Traits::kBoxBytes);
        for (int part = 0; part < tiles; ++part) {
            copy_bounded<Traits::kBoxes>(storage.queries[part], Traits::kBoxBytes, maps.q,
                                         &storage.queries_full, piece.head, tile.first_row,
                                         tile.rows, part * Traits::kRows);
        }
        const int seen = piece.most_seen();
        const int steps = piece.most_steps();
        const auto copy_keys = [&](int step) {
#pragma unroll
            for (int part = 0; part < Traits::kKeyParts; ++part) {
                const auto [stage, parity] =
                    slot_of<Traits::kStages>((first + step) * Traits::kKeyParts + part);
                ptx::mbarrier_wait(&storage.keys_empty[stage], parity ^ 1);
                ptx::mbarrier_expect_bytes(&storage.keys_full[stage], Traits::kKeyStageBytes);
                copy_bounded<Traits::kKeyBoxes>(
                    storage.keys[stage], Traits::kBoxBytes, maps.k, &storage.keys_full[stage],
                    kv_head, tile.first_key, seen, step * Traits::kKeys, part * Traits::kKeyBoxes);
            }
        };
        const auto copy_values = [&](int step) {
#pragma unroll
            for (int part = 0; part < Traits::kValueParts; ++part) {
                const auto [stage, parity] =
                    slot_of<Traits::kStages>((first + step) * Traits::kValueParts + part);
                ptx::mbarrier_wait(&storage.values_empty[stage], parity ^ 1);
                ptx::mbarrier_expect_bytes(&storage.values_full[stage], Traits::kValueStageBytes);
                copy_bounded<Traits::kValueBoxes>(storage.values[stage], Traits::kValueBoxBytes,
                                                  maps.v, &storage.values_full[stage], kv_head,
                                                  tile.first_key, seen,
                                                  step * Traits::kKeys + part * Traits::kValueRows);
            }
        };
        for (int step = 0; step < steps + Traits::kLead; ++step) {
            if (step < steps) copy_keys(step);
            if (step >= Traits::kLead) copy_values(step - Traits::kLead);
        }
        first += steps;
        // Drawn as late as the copies allow, so that a block with a long item takes fewer.
        index = gridDim.x + atomicAdd(&arguments.counters->drawn, 1);
    }
    // The last block to finish resets the counters for the next launch.
    if (atomicAdd(&arguments.counters->finished, 1) == static_cast<int>(gridDim.x) - 1) {
        arguments.counters->drawn = 0;
        arguments.counters->finished = 0;
    }
}

// scores = queries . keys^T, or scores += those of further elements
template <class Traits>
__device__ __forceinline__ void start_scores(std::uint32_t scores, const void* queries,
                                             const void* keys, bool add) {
    constexpr std::uint32_t kProduct =
        ptx::tensor_product<typename Traits::T>(Traits::kRows, Traits::kKeys);
    const std::uint64_t a = ptx::tensor_operand(ptx::shared_address(queries));
    const std::uint64_t b = ptx::tensor_operand(ptx::shared_address(keys));
#pragma unroll
    for (int part = 0; part < Traits::kKeyBoxes * 4; ++part) {
        const int offset = part / 4 * (Traits::kBoxBytes / 16) + part % 4 * 2;
        ptx::tensor_multiply<typename Traits::T, 1>(scores, a + offset, b + offset, kProduct,
                                                    add || part > 0);
    }
}

// sums += weights . values, or sums = weights . values
template <class Traits>
__device__ __forceinline__ void start_sums(std::uint32_t sums, std::uint32_t weights,
                                           const void* values, bool add) {
    constexpr std::uint32_t kProduct =
        ptx::tensor_product<typename Traits::T>(Traits::kRows, Traits::kValueDim) |
        ptx::kWidthMajorB;
    const std::uint64_t b =
        ptx::tensor_width_major_operand(ptx::shared_address(values), Traits::kValueBoxBytes);
#pragma unroll
    for (int part = 0; part < Traits::kValueRows / 16; ++part) {
        ptx::tensor_multiply_from_memory(sums, weights + part * 8, b + part * (2048 / 16), kProduct,
                                         add || part > 0);
    }
}

template <class Traits>
__device__ void multiply(typename Traits::Storage& storage, const PrefillArguments& arguments) {
    const int pieces = arguments.tile_count * arguments.heads;
    const std::uint32_t memory = storage.tensor_memory;
    Turns<> queries;
    Turns<Traits::kBuffers> weights[Traits::kTiles];
    unsigned first = 0;  // step of the item, counted over all items
    while (true) {
        ptx::mbarrier_wait(&storage.queries_full, queries.next().parity);
        if (storage.piece >= pieces) break;
        const Piece piece = piece_at(arguments, storage.piece);
        const int most = piece.most_steps();
        // The first tile waits for a stage, the last one releases it, be there products or not.
        const auto multiply_keys = [&](int tile, int step) {
            const bool exists = step < piece.steps(tile);
            const int buffer = slot_of<Traits::kBuffers>(first + step).stage;
#pragma unroll
            for (int part = 0; part < Traits::kKeyParts; ++part) {
                const auto [stage, parity] =
                    slot_of<Traits::kStages>((first + step) * Traits::kKeyParts + part);
                if (tile == 0) ptx::mbarrier_wait(&storage.keys_full[stage], parity);
                if (exists) {
                    start_scores<Traits>(memory + Traits::scores(tile, buffer),
                                         storage.queries[tile] + part * Traits::kKeyStageBytes,
                                         storage.keys[stage], part > 0);
                }
                if (exists && part + 1 == Traits::kKeyParts) {
                    ptx::tensor_commit<1>(&storage.scores_full[tile][buffer]);
                }
                if (tile + 1 == Traits::kTiles) {
                    ptx::tensor_commit<1>(&storage.keys_empty[stage]);
                }
            }
            if (tile + 1 == Traits::kTiles && step + 1 == most) {
                ptx::tensor_commit<1>(&storage.queries_empty);
            }
        };
        const auto multiply_values = [&](int tile, int step) {
            const int steps = piece.steps(tile);
            const bool exists = step < steps;
            int buffer = 0;
            if (exists) {
                const Slot slot = weights[tile].next();
                buffer = slot.stage;
                ptx::mbarrier_wait(&storage.weights_full[tile][buffer], slot.parity);
                ptx::tensor_fence_after_sync();
            }
#pragma unroll
            for (int part = 0; part < Traits::kValueParts; ++part) {
                const auto [stage, parity] =
                    slot_of<Traits::kStages>((first + step) * Traits::kValueParts + part);
                if (tile == 0) ptx::mbarrier_wait(&storage.values_full[stage], parity);
                if (exists) {
                    start_sums<Traits>(
                        memory + Traits::sums(tile),
                        memory + Traits::scores(tile, buffer) + part * Traits::kValueRows / 2,
                        storage.values[stage], step + part > 0);
                }
                if (tile + 1 == Traits::kTiles) {
                    ptx::tensor_commit<1>(&storage.values_empty[stage]);
                }
            }
            if (exists && (Traits::kBuffers > 1 || step + 1 == steps)) {
                ptx::tensor_commit<1>(&storage.sums_full[tile][buffer]);
            }
        };
        for (int step = 0; step <= most; ++step) {
#pragma unroll
            for (int tile = 0; tile < Traits::kTiles; ++tile) {
                if (Traits::kBuffers > 1 && step < most) multiply_keys(tile, step);
                if (step > 0) multiply_values(tile, step - 1);
                if (Traits::kBuffers == 1 && step < most) multiply_keys(tile, step);
            }
        }
        first += most;
    }
}

template <class Traits>
__global__ void __launch_bounds__(Traits::kThreads, 1)
    prefill_kernel(const __grid_constant__ PrefillArguments arguments,
                   const __grid_constant__ Maps maps) {
    extern __shared__ unsigned char shared[];
    const std::uint32_t start = ptx::shared_address(shared);
    auto& storage = *reinterpret_cast<typename Traits::Storage*>(
        shared + ((start + 1023) / 1024 * 1024 - start));
    const int warp = __shfl_sync(~0u, threadIdx.x / 32, 0);
    const bool first_lane = threadIdx.x % 32 == 0;

    if (threadIdx.x == 0) {
        ptx::mbarrier_init(&storage.queries_full, 1);
        // The products, and the warps that read the item's number.
        ptx::mbarrier_init(&storage.queries_empty, 1 + 4 * Traits::kTiles);
        for (int stage = 0; stage < Traits::kStages; ++stage) {
            ptx::mbarrier_init(&storage.keys_full[stage], 1);
            ptx::mbarrier_init(&storage.keys_empty[stage], 1);
            ptx::mbarrier_init(&storage.values_full[stage], 1);
            ptx::mbarrier_init(&storage.values_empty[stage], 1);
        }
        for (int tile = 0; tile < Traits::kTiles; ++tile) {
            for (int buffer = 0; buffer < Traits::kBuffers; ++buffer) {
                ptx::mbarrier_init(&storage.scores_full[tile][buffer], 1);
                ptx::mbarrier_init(&storage.weights_full[tile][buffer], 4);
                ptx::mbarrier_init(&storage.sums_full[tile][buffer], 1);
            }
        }
        ptx::fence_mbarrier_init();
    }
    if (warp == 2) {
        ptx::tensor_memory_allocate<1>(&storage.tensor_memory, Traits::kTensorColumns);
        ptx::tensor_memory_relinquish<1>();
    }
    ptx::tensor_fence_before_sync();
    __syncthreads();  // barriers and the address are visible to all
    ptx::tensor_fence_after_sync();

    if (warp < 4) {
        if constexpr (Traits::kMovesRegisters) {
            ptx::decrease_registers<Traits::kOtherRegisters>();
        }
        if (warp == 0 && first_lane) copy<Traits>(storage, maps, arguments);
        if (warp == 1 && first_lane) multiply<Traits>(storage, arguments);
        __syncwarp();
    } else {
        if constexpr (Traits::kMovesRegisters) {
            ptx::increase_registers<Traits::kSoftmaxRegisters>();
        }
        soften<Traits>(arguments, storage, warp / 4 - 1);
    }
    ptx::tensor_fence_before_sync();
    __syncthreads();  // nobody uses tensor memory any more
    ptx::tensor_fence_after_sync();
    // Asked again, because the softmax has no register to keep it in.
    if (threadIdx.x / 32 == 2) {
        ptx::tensor_memory_free<1>(storage.tensor_memory, Traits::kTensorColumns);
    }
}

}  // namespace prefill::blackwell
