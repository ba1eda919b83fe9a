// Prefill for Hopper: wgmma fed by TMA.
//
// A persistent kernel: one block per SM takes work items, tiles of queries of one head or of the
// heads that share a KV head, until none is left. Warpgroup 0 is the producer: one of its threads
// draws the next item from a counter and issues TMA loads of its queries, then of keys and values,
// a step at a time, into two or four buffers each; it runs ahead into the next item while the last
// one is written out. The other warpgroups are consumers with 64 rows each. A consumer issues the
// scores of the next step before it adds the values of this one, so that its softmax overlaps the
// tensor cores, as do those of the others.
//
// Rows of a tile: query by query, and of each the heads that share the tile.
// Shared memory: boxes of 64 elements by any number of rows, under the 128-byte swizzle.
#pragma once

#include <cstdint>
#include <type_traits>

#include "Kernels/device/ptx/mbarrier.cuh"
#include "Kernels/device/ptx/named_barrier.cuh"
#include "Kernels/device/ptx/registers.cuh"
#include "Kernels/device/ptx/tma.cuh"
#include "Kernels/device/ptx/wgmma.cuh"
#include "Kernels/prefill/arguments.cuh"
#include "Kernels/prefill/hopper/rows.cuh"
#include "Kernels/prefill/hopper/traits.cuh"
#include "Kernels/prefill/packed_map.cuh"

namespace prefill::hopper {

namespace ptx = device::ptx;

template <class Traits>
__device__ __forceinline__ void produce(typename Traits::Storage& storage, const Maps& maps,
                                        const PrefillArguments& arguments) {
    const int tile_rows = Traits::kRows / arguments.heads_per_tile * arguments.heads_per_tile;
    unsigned step = 0;
    Piece piece = piece_at(arguments, blockIdx.x);
    for (unsigned turn = 0;; ++turn) {
        ptx::mbarrier_wait(&storage.queries_empty, (turn & 1) ^ 1);
        storage.piece = piece;
        if (piece.head < 0) {
            ptx::mbarrier_arrive(&storage.queries_full);
            break;
        }
        const Tile& tile = piece.tile;
        const int kv_head = piece.head / arguments.group;
        ptx::mbarrier_expect_bytes(&storage.queries_full,
                                   Traits::kBoxes * kBoxRowBytes * tile_rows);
        copy_boxes<Traits::kBoxes>(storage.queries, Traits::kQueryBoxBytes, maps.q,
                                   &storage.queries_full, piece.head, arguments.total_q,
                                   tile.first_row, tile.rows, 0);
        const int seen = tile.seen();
        const int steps = piece.steps<Traits::kKeys>();
        int drawn = 0;
        for (int left = steps; left > 0; --left, ++step) {
            const int first = (steps - left) * Traits::kKeys;
            const auto [stage, parity] = slot_of<Traits::kStages>(step);
            ptx::mbarrier_wait(&storage.keys_empty[stage], parity ^ 1);
            ptx::mbarrier_expect_bytes(&storage.keys_full[stage], Traits::kKeyStageBytes);
            copy_boxes<Traits::kBoxes>(storage.keys[stage], Traits::kKeyBoxBytes, maps.k,
                                       &storage.keys_full[stage], kv_head, arguments.total_kv,
                                       tile.first_key, seen, first);
            ptx::mbarrier_wait(&storage.values_empty[stage], parity ^ 1);
            ptx::mbarrier_expect_bytes(&storage.values_full[stage], Traits::kValueStageBytes);
            copy_boxes<Traits::kValueBoxes>(storage.values[stage], Traits::kKeyBoxBytes, maps.v,
                                            &storage.values_full[stage], kv_head,
                                            arguments.total_kv, tile.first_key, seen, first);
            // Late, so that a block with a long item takes fewer, but a step before the answer is
            // needed.
            if (left == min(steps, 2)) drawn = atomicAdd(&arguments.counters->drawn, 1);
        }
        piece = piece_at(arguments, static_cast<int>(gridDim.x) + drawn);
    }
    // The last block to finish resets the counters for the next launch.
    if (atomicAdd(&arguments.counters->finished, 1) == static_cast<int>(gridDim.x) - 1) {
        arguments.counters->drawn = 0;
        arguments.counters->finished = 0;
    }
}

// The operand `bytes` further: its lower word starts with the address in units of 16 bytes.
__device__ __forceinline__ std::uint64_t further(std::uint64_t operand, int bytes) {
    const std::uint32_t low = static_cast<std::uint32_t>(operand) + bytes / 16;
    return operand >> 32 << 32 | low;
}

// Issues scores = queries . keys^T.
template <class Traits>
__device__ __forceinline__ void start_scores(float (&scores)[Traits::kKeys / 2],
                                             std::uint64_t queries, std::uint64_t keys) {
#pragma unroll
    for (int part = 0; part < Traits::kHeadDim / 16; ++part) {
        const int box = part / 4, offset = part % 4 * 32;
        ptx::wgmma<typename Traits::T>(
            scores, further(queries, box * Traits::kQueryBoxBytes + offset),
            further(keys, box * Traits::kKeyBoxBytes + offset), part > 0);
    }
    ptx::wgmma_commit();
}

// Issues sums += weights . values.
template <class Traits>
__device__ __forceinline__ void start_sums(float (&sums)[Traits::kValueDim / 2],
                                           const std::uint32_t (&weights)[Traits::kKeys / 4],
                                           std::uint64_t values) {
#pragma unroll
    for (int part = 0; part < Traits::kKeys / 16; ++part) {
        ptx::wgmma_width_major<typename Traits::T>(sums, weights + 4 * part,
                                                   further(values, part * 16 * kBoxRowBytes));
    }
    ptx::wgmma_commit();
}

// Barrier 1 + i tells consumer i that it is its turn to issue products.
template <class Traits>
__device__ __forceinline__ void wait_for_turn(int consumer) {
    if constexpr (Traits::kTurns) ptx::named_barrier_sync(1 + consumer, 256);
}
template <class Traits>
__device__ __forceinline__ void pass_turn(int consumer) {
    if constexpr (Traits::kTurns) {
        ptx::named_barrier_arrive(consumer + 1 == Traits::kConsumers ? 1 : 2 + consumer, 256);
    }
}

// One work item of a consumer. `step` counts over all items.
template <class Traits>
__device__ __forceinline__ void attend(typename Traits::Storage& storage, int consumer,
                                       const Range& range, float scale_log2, unsigned& step,
                                       float (&sums)[Traits::kValueDim / 2], LaneRows& rows) {
    using T = typename Traits::T;
    const int lane = threadIdx.x % 32;
    const std::uint64_t queries = ptx::depth_major_operand(
        ptx::shared_address(storage.queries) + consumer * Traits::kConsumerRows * kBoxRowBytes);
    const std::uint64_t keys = ptx::depth_major_operand(ptx::shared_address(storage.keys));
    const std::uint64_t values =
        ptx::width_major_operand(ptx::shared_address(storage.values), Traits::kKeyBoxBytes);
#pragma unroll
    for (float& sum : sums) sum = 0.0f;
    rows = no_rows();
    float scores[Traits::kKeys / 2];
    std::uint32_t weights[Traits::kKeys / 4];
    int done = 0;

    // The queries are no longer needed after the scores of the last step.
    const auto release_keys = [&](int stage) {
        if (lane != 0) return;
        ptx::mbarrier_arrive(&storage.keys_empty[stage]);
        if (done + 1 == range.steps) ptx::mbarrier_arrive(&storage.queries_empty);
    };
    const auto mask = [&] {
        const int first = done * Traits::kKeys;
        mask_scores(scores, range.limits[0] - first, range.limits[1] - first);
    };

    const Slot start = slot_of<Traits::kStages>(step);
    ptx::mbarrier_wait(&storage.keys_full[start.stage], start.parity);
    wait_for_turn<Traits>(consumer);
    ptx::wgmma_fence();
    start_scores<Traits>(scores, queries, further(keys, start.stage * Traits::kKeyStageBytes));
    pass_turn<Traits>(consumer);
    ptx::wgmma_wait<0>();
    ptx::pin(scores);
    release_keys(start.stage);
    if (range.full == 0) mask();
    weigh_scores(scores, rows, scale_log2);
    pack_weights<T>(weights, scores);
    ptx::mbarrier_wait(&storage.values_full[start.stage], start.parity);

    // Issues the scores of the next step and the sums of the last one, whose values are there.
    const auto advance = [&](auto masked) {
        const Slot last = slot_of<Traits::kStages>(step);
        const Slot next = slot_of<Traits::kStages>(++step);
        ++done;
        ptx::mbarrier_wait(&storage.keys_full[next.stage], next.parity);
        wait_for_turn<Traits>(consumer);
        ptx::pin(sums);
        ptx::pin(weights);
        ptx::wgmma_fence();
        start_scores<Traits>(scores, queries, further(keys, next.stage * Traits::kKeyStageBytes));
        start_sums<Traits>(sums, weights, further(values, last.stage * Traits::kValueStageBytes));
        pass_turn<Traits>(consumer);
        ptx::wgmma_wait<1>();
        ptx::pin(scores);
        release_keys(next.stage);
        if constexpr (decltype(masked)::value) mask();
        weigh_scores(scores, rows, scale_log2);
        // The compiler moves the wait for the last step's sums ahead of the exponentials. Consumers
        // that take turns lose by that. It does not move it across the loop of another wait, here
        // that for the values of this step, nor that loop ahead of the exponentials if its parity
        // depends on their total, which is never negative.
        const bool negative = rows.total[0] + rows.total[1] < 0.0f;
        const unsigned never = Traits::kTurns && negative ? 1 : 0;
        ptx::mbarrier_wait(&storage.values_full[next.stage], next.parity ^ never);
        ptx::wgmma_wait<0>();
        ptx::pin(sums);
        ptx::pin(weights);
        if (lane == 0) ptx::mbarrier_arrive(&storage.values_empty[last.stage]);
        rescale(sums, rows);
        pack_weights<T>(weights, scores);
    };
    while (done + 1 < range.full) advance(std::false_type());
    while (done + 1 < range.steps) advance(std::true_type());

    const Slot last = slot_of<Traits::kStages>(step++);
    ptx::pin(sums);
    ptx::pin(weights);
    ptx::wgmma_fence();
    start_sums<Traits>(sums, weights, further(values, last.stage * Traits::kValueStageBytes));
    ptx::wgmma_wait<0>();
    ptx::pin(sums);
    if (lane == 0) ptx::mbarrier_arrive(&storage.values_empty[last.stage]);
}

template <class Traits>
__device__ __forceinline__ void consume(typename Traits::Storage& storage,
                                        const PrefillArguments& arguments) {
    // From one lane, so that the compiler knows it to be the same in all and keeps what follows
    // from it, such as operands and the number of steps, in the warp's registers.
    const int consumer = __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x) / 128 - 1, 0);
    const int lane = threadIdx.x % 32;
    const int first_row = static_cast<int>(threadIdx.x) / 32 * 16 - 64;
    // The first consumer starts; each of the others does when the one before passes its turn on.
    if (consumer == Traits::kConsumers - 1) pass_turn<Traits>(consumer);
    unsigned step = 0;
    for (unsigned turn = 0;; ++turn) {
        ptx::mbarrier_wait(&storage.queries_full, turn & 1);
        const Piece piece = broadcast(storage.piece);
        if (piece.head < 0) break;
        const LanePlaces places = {arguments, piece, first_row + lane / 4};
        const int first_query = consumer * Traits::kConsumerRows / arguments.heads_per_tile;
        const int seen_by_all = piece.tile.visible + piece.tile.step * first_query;
        const int steps = piece.steps<Traits::kKeys>();
        const Range range = {steps,
                             __shfl_sync(0xffffffffu, min(seen_by_all / Traits::kKeys, steps), 0),
                             {places.limit(0), places.limit(1)}};
        float sums[Traits::kValueDim / 2];
        LaneRows rows;
        attend<Traits>(storage, consumer, range, arguments.scale_log2, step, sums, rows);
        if (piece.tile.part_row < 0) {
            write_rows<Traits>(sums, rows, places, arguments);
        } else {
            write_part<Traits>(sums, rows, places, arguments);
        }
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

    // Rows that no query fills: whatever is there would send its warp looking for maxima.
    const int tile_rows = Traits::kRows / arguments.heads_per_tile * arguments.heads_per_tile;
    for (int box = 0; box < Traits::kBoxes; ++box) {
        unsigned char* rows = storage.queries + box * Traits::kQueryBoxBytes;
        for (int word = tile_rows * 32 + threadIdx.x; word < Traits::kRows * 32;
             word += Traits::kThreads) {
            reinterpret_cast<std::uint32_t*>(rows)[word] = 0;
        }
    }
    ptx::fence_async_proxy();
    if (threadIdx.x == 0) {
        constexpr int kConsumerWarps = 4 * Traits::kConsumers;
        ptx::mbarrier_init(&storage.queries_full, 1);
        ptx::mbarrier_init(&storage.queries_empty, kConsumerWarps);
        for (int stage = 0; stage < Traits::kStages; ++stage) {
            ptx::mbarrier_init(&storage.keys_full[stage], 1);
            ptx::mbarrier_init(&storage.keys_empty[stage], kConsumerWarps);
            ptx::mbarrier_init(&storage.values_full[stage], 1);
            ptx::mbarrier_init(&storage.values_empty[stage], kConsumerWarps);
        }
        ptx::fence_mbarrier_init();
    }
    // Makes the barriers and the zeros visible before their first use.
    __syncthreads();

    if (threadIdx.x < 128) {
        ptx::decrease_registers<Traits::kProducerRegisters>();
        if (threadIdx.x == 0) produce<Traits>(storage, maps, arguments);
    } else {
        ptx::increase_registers<Traits::kConsumerRegisters>();
        consume<Traits>(storage, arguments);
    }
}

}  // namespace prefill::hopper
