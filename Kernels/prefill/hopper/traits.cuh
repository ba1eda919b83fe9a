// Shared by the parts of Hopper's kernel: its shape, its memory, and a work item.
#pragma once

#include <cuda.h>

#include <algorithm>
#include <cstdint>

#include "Kernels/prefill/arguments.cuh"

namespace prefill::hopper {

constexpr int kBoxRowBytes = 128;

// One work item: a tile of queries, of one head or of those that share a KV head.
struct Piece {
    Tile tile;
    // The first; negative once the work has run out.
    int head;

    template <int kKeys>
    __device__ __forceinline__ int steps() const {
        return (tile.seen() + kKeys - 1) / kKeys;
    }
};

__device__ __forceinline__ Piece piece_at(const PrefillArguments& arguments, int index) {
    const int heads_per_tile = arguments.heads_per_tile;
    const Place place = place_of(index, arguments.tile_count, arguments.heads / heads_per_tile,
                                 arguments.heads_at_once / heads_per_tile);
    if (place.tile < 0) return {{}, -1};
    return {arguments.tiles[place.tile], place.list * heads_per_tile};
}

// Only the first lane reads it, because only that lane releases the slot.
__device__ __forceinline__ Piece broadcast(const Piece& shared) {
    Piece piece = {};
    if (threadIdx.x % 32 == 0) piece = shared;
    const auto all = [](int value) { return __shfl_sync(0xffffffffu, value, 0); };
    const Tile& tile = piece.tile;
    return {{all(tile.first_row), all(tile.rows), 0, all(tile.visible), all(tile.step),
             all(tile.part_row)},
            all(piece.head)};
}

// A step's buffer and the parity of its phase.
struct Slot {
    int stage;
    unsigned parity;
};
template <int kStages>
__device__ __forceinline__ Slot slot_of(unsigned step) {
    return {static_cast<int>(step % kStages), step / kStages % 2};
}

// The keys of an item, for one consumer.
struct Range {
    int steps;
    // Steps whose keys all of its queries see.
    int full;
    // Keys that this lane's two rows see.
    int limits[2];
};

template <class Element, int kHeadDim_, int kRows_, int kKeys_, int kValueDim_>
struct Traits {
    using T = Element;
    static constexpr int kHeadDim = kHeadDim_;
    static constexpr int kValueDim = kValueDim_;
    static constexpr int kRows = kRows_;
    static constexpr int kKeys = kKeys_;
    static constexpr int kConsumerRows = 64;
    static constexpr int kConsumers = kRows / kConsumerRows;
    static constexpr int kThreads = 128 * (1 + kConsumers);
    // Of an output.
    static constexpr int kPackets = kValueDim * 2 / 16;
    // Boxes of 64 elements per row.
    static constexpr int kBoxes = kHeadDim / 64;
    static constexpr int kValueBoxes = kValueDim / 64;
    static constexpr int kQueryBoxBytes = kRows * kBoxRowBytes;
    static constexpr int kKeyBoxBytes = kKeys * kBoxRowBytes;
    // The block starts with its share of the SM's 65536, in eights; what the producer returns goes
    // to the consumers.
    static constexpr int kLaunchRegisters = 65536 / kThreads / 8 * 8;
    static constexpr int kProducerRegisters = 32;
    static constexpr int kConsumerRegisters =
        (kLaunchRegisters * (1 + kConsumers) - kProducerRegisters) / kConsumers / 8 * 8;

    // Scores and sums in fp32 and weights in pairs, beside addresses and the rows' state: what
    // bounds the keys of a step.
    static constexpr int kRegisters = kKeys / 2 + kKeys / 4 + kValueDim / 2 + 32;
    // Four consumers take turns issuing products, which are so small that reading their operands
    // limits them; three are faster without.
    static constexpr bool kTurns = kConsumers > 3;
    static constexpr int kKeyStageBytes = kBoxes * kKeyBoxBytes;
    static constexpr int kValueStageBytes = kValueBoxes * kKeyBoxBytes;
    // As many as fit, but more than four gain nothing.
    static constexpr int kRingBytes = 225 * 1024 - kBoxes * kQueryBoxBytes;
    static constexpr int kStages = std::min(4, kRingBytes / (kKeyStageBytes + kValueStageBytes));

    static_assert(kHeadDim % 64 == 0 && kHeadDim <= 256, "head_dim must be whole boxes");
    static_assert(kValueDim == 64 || kValueDim == 128 || kValueDim == 256,
                  "value_dim must be the width of an instruction");
    static_assert(kRegisters <= kConsumerRegisters,
                  "a tile of so many keys needs more registers than a consumer has");

    struct Storage {
        unsigned char queries[kBoxes * kQueryBoxBytes];
        unsigned char keys[kStages][kKeyStageBytes];
        unsigned char values[kStages][kValueStageBytes];
        Piece piece;
        std::uint64_t queries_full;
        std::uint64_t queries_empty;
        std::uint64_t keys_full[kStages];
        std::uint64_t keys_empty[kStages];
        std::uint64_t values_full[kStages];
        std::uint64_t values_empty[kStages];
    };
    // Boxes must start at multiples of 1024 bytes, which shared memory itself may not.
    static constexpr int kSharedBytes = sizeof(Storage) + 1024;
    static_assert(kSharedBytes <= 227 * 1024, "too much shared memory");
};

struct Maps {
    CUtensorMap q;
    CUtensorMap k;
    CUtensorMap v;
};

}  // namespace prefill::hopper
