// Shared by the parts of Blackwell's kernel: its shape, its memories, and a work item.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "Kernels/prefill/arguments.cuh"

namespace prefill::blackwell {

template <class Element, int kHeadDim_, int kRows_, int kValueDim_>
struct Traits {
    using T = Element;
    static constexpr int kHeadDim = kHeadDim_;
    static constexpr int kValueDim = kValueDim_;
    static constexpr int kRows = 128;              // of a tile
    static constexpr int kTiles = kRows_ / kRows;  // of queries, in flight together
    static constexpr int kKeys = 128;              // per step
    static constexpr int kStages = 2;              // of keys, and of values
    // Buffers of a tile's scores: two where no other tile keeps the tensor cores busy.
    static constexpr int kBuffers = 2 / kTiles;
    // Stages that a step takes. Each has a part of the product's depth: of the elements of all
    // keys, of all elements of some values.
    static constexpr int kKeyParts = kHeadDim > 192 ? 2 : 1;
    static constexpr int kValueParts = kHeadDim > 128 ? 2 : 1;
    // Steps by which keys are copied ahead of values: one where the stages hold the values of a
    // single step, for whose release the next keys would wait.
    static constexpr int kLead = kValueParts == kStages ? 1 : 0;
    // Boxes of 64 elements per row, under the 128-byte swizzle.
    static constexpr int kBoxes = kHeadDim / 64;
    static constexpr int kValueBoxes = kValueDim / 64;
    static constexpr int kKeyBoxes = kBoxes / kKeyParts;    // of a stage
    static constexpr int kValueRows = kKeys / kValueParts;  // of a stage
    static constexpr int kBoxBytes = 128 * 128;             // of queries and keys
    static constexpr int kValueBoxBytes = kValueRows * 128;
    static constexpr int kKeyStageBytes = kKeyBoxes * kBoxBytes;
    static constexpr int kValueStageBytes = kValueBoxes * kValueBoxBytes;
    // Warps: copies, products, tensor memory, none, and four per tile for its softmax.
    static constexpr int kThreads = 128 * (1 + kTiles);
    // A tile alone has as many as a thread can have from the start.
    static constexpr bool kMovesRegisters = kTiles > 1;
    static constexpr int kOtherRegisters = 40;
    static constexpr int kSoftmaxRegisters = 232;

    // Columns of tensor memory: a tile's scores, over which its weights are written as pairs, and
    // its sums.
    static constexpr int kTensorColumns = 512;
    static constexpr std::uint32_t scores(int tile, int buffer) {
        return (tile * kBuffers + buffer) * kKeys;
    }
    static constexpr std::uint32_t sums(int tile) {
        return kTiles * kBuffers * kKeys + tile * kValueDim;
    }

    static_assert(kTiles == 1 || kTiles == 2, "a block has one tile of queries or two");
    static_assert(kHeadDim % 64 == 0 && kValueDim % 64 == 0, "heads must be whole boxes");
    static_assert(kTiles * (kBuffers * kKeys + kValueDim) <= kTensorColumns,
                  "too much tensor memory");

    struct Storage {
        unsigned char queries[kTiles][kBoxes * kBoxBytes];
        unsigned char keys[kStages][kKeyStageBytes];
        unsigned char values[kStages][kValueStageBytes];
        // The work item; none once the work has run out.
        int piece;
        std::uint32_t tensor_memory;
        std::uint64_t queries_full;
        std::uint64_t queries_empty;
        std::uint64_t keys_full[kStages];
        std::uint64_t keys_empty[kStages];
        std::uint64_t values_full[kStages];
        std::uint64_t values_empty[kStages];
        std::uint64_t scores_full[kTiles][kBuffers];
        std::uint64_t weights_full[kTiles][kBuffers];
        // After an item's last step; with two buffers after every step.
        std::uint64_t sums_full[kTiles][kBuffers];
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

// One work item: up to two tiles of queries of one head.
struct Piece {
    Tile tile;
    int head;

    __device__ int rows_of(int tile_number) const {
        return min(128, tile.rows - tile_number * 128);
    }
    // Keys that the tile's last query sees; none if it has no queries.
    __device__ int seen(int tile_number) const {
        const int rows = rows_of(tile_number);
        return rows <= 0 ? 0 : tile.visible + tile.step * (tile_number * 128 + rows - 1);
    }
    __device__ int steps(int tile_number) const { return (seen(tile_number) + 127) / 128; }
    __device__ int most_steps() const { return max(steps(0), steps(1)); }
    __device__ int most_seen() const { return max(seen(0), seen(1)); }
};

__device__ __forceinline__ Piece piece_at(const PrefillArguments& arguments, int index) {
    const Place place =
        place_of(index, arguments.tile_count, arguments.heads, arguments.heads_at_once);
    return {arguments.tiles[place.tile], place.list};
}

// A turn's buffer and the parity of its phase.
struct Slot {
    int stage;
    unsigned parity;
};
template <int kStages>
__device__ __forceinline__ Slot slot_of(unsigned turn) {
    return {static_cast<int>(turn % kStages), turn / kStages % 2};
}

// Counts the turns of buffers, or of one barrier, that one thread waits for.
template <int kBuffers = 1>
struct Turns {
    unsigned count = 0;

    __device__ Slot next() { return slot_of<kBuffers>(count++); }
};

}  // namespace prefill::blackwell
