// Prefill for Blackwell: tcgen05 fed by TMA, scores, weights and sums in tensor memory.
//
// A persistent kernel: one block per SM takes work items, up to 256 queries of one head, until none
// is left. One thread draws items from a counter and copies queries, keys and values; one
// multiplies; a warpgroup per tile of 128 queries turns scores into weights. While one tile's
// softmax runs, the tensor cores work for the other.
//
// A tile's products alternate: sums += weights . values of a step, then the scores of the next step
// over the same columns of tensor memory. Products of a thread complete in order, so that whoever
// sees new scores may also change the sums: that is how they are rescaled, on the rare occasion
// that a row's maximum grows by much.
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
    int step = 0;
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
        const int tiles = piece.rows_of(1) > 0 ? 2 : 1;
        constexpr int kBytes = Traits::kBoxes * Traits::kBoxBytes;
        ptx::mbarrier_expect_bytes(&storage.queries_full, tiles * kBytes);
        for (int part = 0; part < tiles; ++part) {
            copy_boxes<Traits::kBoxes>(storage.queries[part], Traits::kBoxBytes, maps.q,
                                       &storage.queries_full, piece.head, arguments.total_q,
                                       tile.first_row, tile.rows, part * Traits::kRows);
        }
        const int seen = piece.most_seen();
        for (int first = 0; first < seen; first += Traits::kKeys, ++step) {
            const Slot slot = slot_of(step);
            const auto fetch = [&](unsigned char* to, const CUtensorMap& map, std::uint64_t* empty,
                                   std::uint64_t* full) {
                ptx::mbarrier_wait(empty, slot.parity ^ 1);
                ptx::mbarrier_expect_bytes(full, kBytes);
                copy_boxes<Traits::kBoxes>(to, Traits::kBoxBytes, map, full, kv_head,
                                           arguments.total_kv, tile.first_key, seen, first);
            };
            fetch(storage.keys[slot.stage], maps.k, &storage.keys_empty[slot.stage],
                  &storage.keys_full[slot.stage]);
            fetch(storage.values[slot.stage], maps.v, &storage.values_empty[slot.stage],
                  &storage.values_full[slot.stage]);
        }
        // Drawn as late as the copies allow, so that a block with a long item takes fewer.
        index = gridDim.x + atomicAdd(&arguments.counters->drawn, 1);
    }
    // The last block to finish resets the counters for the next launch.
    if (atomicAdd(&arguments.counters->finished, 1) == static_cast<int>(gridDim.x) - 1) {
        arguments.counters->drawn = 0;
        arguments.counters->finished = 0;
    }
}

// scores = queries . keys^T
template <class Traits>
__device__ __forceinline__ void start_scores(std::uint32_t scores, const void* queries,
                                             const void* keys) {
    constexpr std::uint32_t kProduct =
        ptx::tensor_product<typename Traits::T>(Traits::kRows, Traits::kKeys);
    const std::uint64_t a = ptx::tensor_operand(ptx::shared_address(queries));
    const std::uint64_t b = ptx::tensor_operand(ptx::shared_address(keys));
#pragma unroll
    for (int part = 0; part < Traits::kHeadDim / 16; ++part) {
        const int offset = part / 4 * (Traits::kBoxBytes / 16) + part % 4 * 2;
        ptx::tensor_multiply<typename Traits::T, 1>(scores, a + offset, b + offset, kProduct,
                                                    part > 0);
    }
}

// sums += weights . values, or sums = weights . values
template <class Traits>
__device__ __forceinline__ void start_sums(std::uint32_t sums, std::uint32_t weights,
                                           const void* values, bool add) {
    constexpr std::uint32_t kProduct =
        ptx::tensor_product<typename Traits::T>(Traits::kRows, Traits::kHeadDim) |
        ptx::kWidthMajorB;
    const std::uint64_t b =
        ptx::tensor_width_major_operand(ptx::shared_address(values), Traits::kBoxBytes);
#pragma unroll
    for (int part = 0; part < Traits::kKeys / 16; ++part) {
        ptx::tensor_multiply_from_memory(sums, weights + part * 8, b + part * (2048 / 16), kProduct,
                                         add || part > 0);
    }
}

template <class Traits>
__device__ void multiply(typename Traits::Storage& storage, const PrefillArguments& arguments) {
    const int pieces = arguments.tile_count * arguments.heads;
    const std::uint32_t memory = storage.tensor_memory;
    Phase queries, weights[Traits::kTiles];
    int first = 0;  // step of the item, counted over all items
    while (true) {
        ptx::mbarrier_wait(&storage.queries_full, queries.next());
        if (storage.piece >= pieces) break;
        const Piece piece = piece_at(arguments, storage.piece);
        const int most = piece.most_steps();
        for (int step = 0; step <= most; ++step) {
            const Slot now = slot_of(first + step), last = slot_of(first + step - 1);
            if (step < most) ptx::mbarrier_wait(&storage.keys_full[now.stage], now.parity);
            if (step > 0) ptx::mbarrier_wait(&storage.values_full[last.stage], last.parity);
#pragma unroll
            for (int tile = 0; tile < Traits::kTiles; ++tile) {
                const int steps = piece.steps(tile);
                if (step > 0 && step <= steps) {
                    ptx::mbarrier_wait(&storage.weights_full[tile], weights[tile].next());
                    ptx::tensor_fence_after_sync();
                    start_sums<Traits>(memory + Traits::sums(tile), memory + Traits::scores(tile),
                                       storage.values[last.stage], step > 1);
                    if (step == steps) ptx::tensor_commit<1>(&storage.sums_full[tile]);
                }
                if (step < steps) {
                    start_scores<Traits>(memory + Traits::scores(tile), storage.queries[tile],
                                         storage.keys[now.stage]);
                    ptx::tensor_commit<1>(&storage.scores_full[tile]);
                }
            }
            if (step < most) ptx::tensor_commit<1>(&storage.keys_empty[now.stage]);
            if (step > 0) ptx::tensor_commit<1>(&storage.values_empty[last.stage]);
            if (step + 1 == most) ptx::tensor_commit<1>(&storage.queries_empty);
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
            ptx::mbarrier_init(&storage.scores_full[tile], 1);
            ptx::mbarrier_init(&storage.weights_full[tile], 4);
            ptx::mbarrier_init(&storage.sums_full[tile], 1);
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
        ptx::decrease_registers<Traits::kOtherRegisters>();
        if (warp == 0 && first_lane) copy<Traits>(storage, maps, arguments);
        if (warp == 1 && first_lane) multiply<Traits>(storage, arguments);
        __syncwarp();
    } else {
        ptx::increase_registers<Traits::kSoftmaxRegisters>();
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
