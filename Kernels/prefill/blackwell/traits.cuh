// Shared by the parts of Blackwell's kernel: its shape, its memories, and a work item.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "Kernels/prefill/arguments.cuh"

namespace prefill::blackwell {

template <class Element, int kHeadDimValue>
struct Traits {
    using T = Element;
    static constexpr int kHeadDim = kHeadDimValue;
    static constexpr int kTiles = 2;   // of queries, in flight together
    static constexpr int kRows = 128;  // of a tile
    static constexpr int kKeys = 128;  // per step
    static constexpr int kStages = 2;
    // Boxes of 64 elements per row, under the 128-byte swizzle.
    static constexpr int kBoxes = kHeadDim / 64;
    static constexpr int kBoxBytes = 128 * 128;
    // Warps: copies, products, tensor memory, none, and four per tile for its softmax.
    static constexpr int kThreads = 128 * (1 + kTiles);
    static constexpr int kOtherRegisters = 40;
    static constexpr int kSoftmaxRegisters = 232;

    // Columns of tensor memory: a tile's scores, over which its weights are written as pairs, and
    // its sums.
    static constexpr int kTensorColumns = 512;
    static constexpr std::uint32_t scores(int tile) { return tile * kKeys; }
    static constexpr std::uint32_t sums(int tile) { return kTiles * kKeys + tile * kHeadDim; }

    static_assert(kHeadDim == 64 || kHeadDim == 128, "head_dim must be 64 or 128");

    struct Storage {
        unsigned char queries[kTiles][kBoxes * kBoxBytes];
        unsigned char keys[kStages][kBoxes * kBoxBytes];
        unsigned char values[kStages][kBoxes * kBoxBytes];
        // The work item; none once the work has run out.
        int piece;
        std::uint32_t tensor_memory;
        std::uint64_t queries_full;
        std::uint64_t queries_empty;
        std::uint64_t keys_full[kStages];
        std::uint64_t keys_empty[kStages];
        std::uint64_t values_full[kStages];
        std::uint64_t values_empty[kStages];
        std::uint64_t scores_full[kTiles];
        std::uint64_t weights_full[kTiles];
        std::uint64_t sums_full[kTiles];
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

// One work item: up to 256 queries of one head.
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
    const int tile = index / arguments.heads;
    return {arguments.tiles[tile], index - tile * arguments.heads};
}

// Counts the phases of a barrier that one thread waits for.
struct Phase {
    unsigned parity = 0;

    __device__ unsigned next() {
        const unsigned current = parity;
        parity ^= 1;
        return current;
    }
};

// A step's buffer and the parity of its phase.
struct Slot {
    int stage;
    unsigned parity;
};
__device__ __forceinline__ Slot slot_of(int step) {
    return {step % 2, static_cast<unsigned>(step / 2 % 2)};
}

}  // namespace prefill::blackwell
