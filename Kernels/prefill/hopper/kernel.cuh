// Prefill for Hopper: wgmma fed by TMA.
//
// A persistent kernel: one block per SM takes work items, tiles of 128 queries of one head, until
// none is left. Warpgroup 0 is the producer: one of its threads draws the next item from a counter
// and issues TMA loads of its queries, then of keys and values, 128 at a time, into two buffers
// each; it runs ahead into the next item while the last one is written out. Warpgroups 1 and 2 are
// consumers with 64 queries each. A consumer issues the scores of the next step before it adds the
// values of this one, so that its softmax overlaps the tensor cores; and the two ping-pong: they
// take turns issuing products, so that one's softmax runs under the other's.
//
// Shared memory: boxes of 64 elements by any number of rows, under the 128-byte swizzle.
#pragma once

#include <cstdint>

#include "Kernels/device/ptx/mbarrier.cuh"
#include "Kernels/device/ptx/named_barrier.cuh"
#include "Kernels/device/ptx/registers.cuh"
#include "Kernels/device/ptx/tma.cuh"
#include "Kernels/device/ptx/wgmma.cuh"
#include "Kernels/prefill/arguments.cuh"
#include "Kernels/prefill/hopper/rows.cuh"
#include "Kernels/prefill/packed_map.cuh"

namespace prefill::hopper {

namespace ptx = device::ptx;

constexpr int kBoxRowBytes = 128;

template <class Element, int kHeadDim_, int kRows_, int kKeys_>
struct Traits {
    using T = Element;
    static constexpr int kHeadDim = kHeadDim_;
    static constexpr int kRows = kRows_;
    static constexpr int kKeys = kKeys_;
    static constexpr int kStages = 2;
    static constexpr int kConsumerRows = 64;
    static constexpr int kConsumers = kRows / kConsumerRows;
    static constexpr int kThreads = 128 * (1 + kConsumers);
    static constexpr int kRowBytes = kHeadDim * 2;
    static constexpr int kPackets = kRowBytes / 16;
    // Boxes of 64 elements per row.
    static constexpr int kBoxes = kHeadDim / 64;
    static constexpr int kQueryBoxBytes = kRows * kBoxRowBytes;
    static constexpr int kKeyBoxBytes = kKeys * kBoxRowBytes;
    static constexpr int kProducerRegisters = 24;
    static constexpr int kConsumerRegisters = 240;

    static_assert(kHeadDim == 64 || kHeadDim == 128, "head_dim must be 64 or 128");
    static_assert(kConsumers == 2, "two consumers take turns");

    struct Storage {
        unsigned char queries[kBoxes * kQueryBoxBytes];
        unsigned char keys[kStages][kBoxes * kKeyBoxBytes];
        unsigned char values[kStages][kBoxes * kKeyBoxBytes];
        unsigned char staging[kRows * kRowBytes];
        // Number of valid queries; none once the work has run out.
        int piece;
        std::uint64_t queries_full;
        std::uint64_t queries_empty;
        std::uint64_t keys_full[kStages];
        std::uint64_t keys_empty[kStages];
        std::uint64_t values_full[kStages];
        std::uint64_t values_empty[kStages];
    };
    // Boxes must start at multiples of 1024 bytes, which shared memory itself may not.
    static constexpr int kSharedBytes = sizeof(Storage) + 1024;
};

struct Maps {
    CUtensorMap q;
    CUtensorMap k;
    CUtensorMap v;
};

// A step's buffer and the parity of its phase.
struct Slot {
    int stage;
    unsigned parity;
};
__device__ __forceinline__ Slot slot_of(int step) {
    return {step % 2, static_cast<unsigned>(step / 2 % 2)};
}

// One work item: a tile of queries of one head.
struct Piece {
    Tile tile;
    int head;
    // Keys that the tile's last query sees, and the steps they take.
    int seen;
    int steps;
};

template <class Traits>
__device__ __forceinline__ Piece piece_at(const PrefillArguments& arguments, int index) {
    Piece piece;
    const int tile_index = index / arguments.heads;
    piece.head = index - tile_index * arguments.heads;
    piece.tile = arguments.tiles[tile_index];
    piece.seen = piece.tile.visible + arguments.step * (piece.tile.rows - 1);
    piece.steps = (piece.seen + Traits::kKeys - 1) / Traits::kKeys;
    return piece;
}

template <class Traits>
__device__ __forceinline__ void produce(typename Traits::Storage& storage, const Maps& maps,
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
        const Piece piece = piece_at<Traits>(arguments, index);
        const Tile& tile = piece.tile;
        const int kv_head = piece.head / arguments.group;
        ptx::mbarrier_expect_bytes(&storage.queries_full, Traits::kBoxes * Traits::kQueryBoxBytes);
        copy_boxes<Traits::kBoxes>(storage.queries, Traits::kQueryBoxBytes, maps.q,
                                   &storage.queries_full, piece.head, arguments.total_q,
                                   tile.first_row, tile.rows, 0);
        for (int first = 0; first < piece.seen; first += Traits::kKeys, ++step) {
            const auto [stage, parity] = slot_of(step);
            ptx::mbarrier_wait(&storage.keys_empty[stage], parity ^ 1);
            ptx::mbarrier_expect_bytes(&storage.keys_full[stage],
                                       Traits::kBoxes * Traits::kKeyBoxBytes);
            copy_boxes<Traits::kBoxes>(storage.keys[stage], Traits::kKeyBoxBytes, maps.k,
                                       &storage.keys_full[stage], kv_head, arguments.total_kv,
                                       tile.first_key, piece.seen, first);
            ptx::mbarrier_wait(&storage.values_empty[stage], parity ^ 1);
            ptx::mbarrier_expect_bytes(&storage.values_full[stage],
                                       Traits::kBoxes * Traits::kKeyBoxBytes);
            copy_boxes<Traits::kBoxes>(storage.values[stage], Traits::kKeyBoxBytes, maps.v,
                                       &storage.values_full[stage], kv_head, arguments.total_kv,
                                       tile.first_key, piece.seen, first);
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

// Issues scores = queries . keys^T.
template <class Traits>
__device__ __forceinline__ void start_scores(float (&scores)[Traits::kKeys / 2],
                                             std::uint32_t queries, std::uint32_t keys) {
#pragma unroll
    for (int part = 0; part < Traits::kHeadDim / 16; ++part) {
        const int box = part / 4, offset = part % 4 * 32;
        ptx::wgmma<typename Traits::T>(
            scores, ptx::depth_major_operand(queries + box * Traits::kQueryBoxBytes + offset),
            ptx::depth_major_operand(keys + box * Traits::kKeyBoxBytes + offset), part > 0);
    }
    ptx::wgmma_commit();
}

// Issues sums += weights . values.
template <class Traits>
__device__ __forceinline__ void start_sums(float (&sums)[Traits::kHeadDim / 2],
                                           const std::uint32_t (&weights)[Traits::kKeys / 4],
                                           std::uint32_t values) {
#pragma unroll
    for (int part = 0; part < Traits::kKeys / 16; ++part) {
        ptx::wgmma_width_major<typename Traits::T>(
            sums, weights + 4 * part,
            ptx::width_major_operand(values + part * 16 * kBoxRowBytes, Traits::kKeyBoxBytes));
    }
    ptx::wgmma_commit();
}

// Barriers 1 and 2 tell consumers 0 and 1 that it is their turn to issue products.
__device__ __forceinline__ void wait_for_turn(int consumer) {
    ptx::named_barrier_sync(1 + consumer, 256);
}
__device__ __forceinline__ void pass_turn(int consumer) {
    ptx::named_barrier_arrive(2 - consumer, 256);
}

// One work item of a consumer. `step` counts over all items.
template <class Traits>
__device__ __forceinline__ void attend(typename Traits::Storage& storage,
                                       const PrefillArguments& arguments, const Piece& piece,
                                       int& step, float (&sums)[Traits::kHeadDim / 2],
                                       LaneRows& rows) {
    using T = typename Traits::T;
    const int consumer = threadIdx.x / 128 - 1;
    const int lane = threadIdx.x % 32;
    const int first_row = threadIdx.x / 32 * 16 - 64;
    const std::uint32_t queries =
        ptx::shared_address(storage.queries) + consumer * Traits::kConsumerRows * kBoxRowBytes;
    // Keys left from this step on, for the warp's first row.
    int visible = piece.tile.visible + arguments.step * first_row;
#pragma unroll
    for (float& sum : sums) sum = 0.0f;
    rows = {{-INFINITY, -INFINITY}, {0.0f, 0.0f}, {1.0f, 1.0f}, false};
    float scores[Traits::kKeys / 2];
    std::uint32_t weights[Traits::kKeys / 4];

    const auto weigh = [&] {
        if (visible < Traits::kKeys) {
            mask_scores(scores, visible + arguments.step * (lane / 4), arguments.step);
        }
        weigh_scores(scores, rows, arguments.scale_log2);
        visible -= Traits::kKeys;
    };
    // The queries are no longer needed after the scores of the last step.
    const auto release_keys = [&](int stage, bool is_last) {
        if (lane != 0) return;
        ptx::mbarrier_arrive(&storage.keys_empty[stage]);
        if (is_last) ptx::mbarrier_arrive(&storage.queries_empty);
    };

    const Slot first = slot_of(step);
    ptx::mbarrier_wait(&storage.keys_full[first.stage], first.parity);
    wait_for_turn(consumer);
    ptx::wgmma_fence();
    start_scores<Traits>(scores, queries, ptx::shared_address(storage.keys[first.stage]));
    pass_turn(consumer);
    ptx::wgmma_wait<0>();
    ptx::pin(scores);
    release_keys(first.stage, piece.steps == 1);
    weigh();
    pack_weights<T>(weights, scores);

    for (int left = piece.steps - 1; left > 0; --left) {
        const Slot last = slot_of(step);
        const Slot next = slot_of(++step);
        ptx::mbarrier_wait(&storage.keys_full[next.stage], next.parity);
        wait_for_turn(consumer);
        ptx::pin(sums);
        ptx::pin(weights);
        ptx::wgmma_fence();
        start_scores<Traits>(scores, queries, ptx::shared_address(storage.keys[next.stage]));
        ptx::mbarrier_wait(&storage.values_full[last.stage], last.parity);
        ptx::wgmma_fence();
        start_sums<Traits>(sums, weights, ptx::shared_address(storage.values[last.stage]));
        pass_turn(consumer);
        ptx::wgmma_wait<1>();
        ptx::pin(scores);
        release_keys(next.stage, left == 1);
        weigh();
        ptx::wgmma_wait<0>();
        ptx::pin(sums);
        ptx::pin(weights);
        if (lane == 0) ptx::mbarrier_arrive(&storage.values_empty[last.stage]);
        rescale(sums, rows);
        pack_weights<T>(weights, scores);
    }
    const Slot last = slot_of(step++);
    ptx::mbarrier_wait(&storage.values_full[last.stage], last.parity);
    ptx::pin(sums);
    ptx::pin(weights);
    ptx::wgmma_fence();
    start_sums<Traits>(sums, weights, ptx::shared_address(storage.values[last.stage]));
    ptx::wgmma_wait<0>();
    ptx::pin(sums);
    if (lane == 0) ptx::mbarrier_arrive(&storage.values_empty[last.stage]);
}

template <class Traits>
__device__ __forceinline__ void consume(typename Traits::Storage& storage,
                                        const PrefillArguments& arguments) {
    const int pieces = arguments.tile_count * arguments.heads;
    const int consumer = threadIdx.x / 128 - 1;
    const int lane = threadIdx.x % 32;
    const int first_row = threadIdx.x / 32 * 16 - 64;
    unsigned char* staging = storage.staging + first_row * Traits::kRowBytes;
    // The first consumer starts; the second starts when the first passes its turn on.
    if (consumer == 1) pass_turn(1);
    int step = 0;
    for (unsigned turn = 0;; ++turn) {
        ptx::mbarrier_wait(&storage.queries_full, turn & 1);
        // Only the first lane reads it, because only that lane releases the slot.
        const int index = __shfl_sync(0xffffffffu, lane == 0 ? storage.piece : 0, 0);
        if (index >= pieces) break;
        const Piece piece = piece_at<Traits>(arguments, index);
        float sums[Traits::kHeadDim / 2];
        LaneRows rows;
        attend<Traits>(storage, arguments, piece, step, sums, rows);
        if (first_row < piece.tile.rows) {
            write_rows<Traits>(sums, rows, staging, arguments, piece.tile, piece.head, first_row);
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
    // Makes the initialised barriers visible before their first use.
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
