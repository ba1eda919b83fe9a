// Shared by the parts of Blackwell's kernel: its shape and its shared memory.
#pragma once

#include <cuda.h>

#include <algorithm>
#include <cstdint>

#include "Kernels/device/scale_tiles.h"
#include "Kernels/gemm/element.cuh"
#include "Kernels/gemm/ring.cuh"
#include "Kernels/gemm/scheduler.cuh"

namespace gemm::blackwell {

struct Operands {
    Walk walk;
    CUtensorMap a;    // {k, rows, groups of a masked layout or 1}
    CUtensorMap b;    // {k, n, groups}
    CUtensorMap out;  // {n, rows}; not for masked layouts
    // Of scales in tiles: {words of a tile, tiles along k, tiles along the rows}.
    CUtensorMap a_scales;
    CUtensorMap b_scales;
    bool stores_boxes;  // by TMA through `out`
};

// The scales of each stage's operands, if the tensor cores apply them.
template <int kStages, int kABytes, int kBBytes>
struct ScaleStages {
    alignas(128) std::uint8_t a_scales[kStages][kABytes];
    alignas(128) std::uint8_t b_scales[kStages][kBBytes];
};
template <int kStages>
struct ScaleStages<kStages, 0, 0> {};

template <class T, int kBlocksValue, int kColumnsValue, int kStagesValue>
struct Traits {
    using Element = T;
    using Out = OutOf<T>;
    static constexpr int kBlocks = kBlocksValue;  // per tile
    static constexpr int kColumns = kColumnsValue;
    static constexpr int kStages = kStagesValue;
    static constexpr int kBlockRows = 128;
    static constexpr int kRows = kBlockRows * kBlocks;
    static constexpr int kBlockColumns = kColumns / kBlocks;  // of b, in a block's shared memory
    static constexpr int kDepth = 128 / sizeof(T) * kPacking<T>;  // of a stage
    // A tile's sums are stored while the next one's are made. FP8: so are those of each stage.
    static constexpr int kBuffers = kScaled<T> ? 4 : 2;
    static constexpr int kSumColumns = kBuffers * kColumns;
    // Tiles of scales in a stage: along k, and along the columns of b. Tiles of 192 columns start
    // in the middle of every second one.
    static constexpr int kScaleTiles =
        kBlockScaled<T> ? std::max(1, kDepth / kScaleGroup<T> / device::kScaleTileColumns) : 0;
    // Steps that share a tile of scales: it comes with the first of them.
    static constexpr int kScaleSteps =
        kBlockScaled<T> ? std::max(1, kScaleGroup<T>* device::kScaleTileColumns / kDepth) : 1;
    static constexpr int kScaleTilesDown = (kColumns + device::kScaleTileRows - 1) / 128;
    static constexpr int kAScaleBytes = kScaleTiles * device::kScaleTileBytes;
    static constexpr int kBScaleBytes = kScaleTilesDown * kAScaleBytes;
    // A product has 32 bytes of k, and this many scales of each row; 0 if a stage has one.
    static constexpr int kProductScales = 32 * kPacking<T> / kScaleGroup<T>;
    // A block's part of a stage, without and with scales.
    static constexpr int kOperandBytes = (kBlockRows + kBlockColumns) * 128;
    static constexpr int kStageBytes = kOperandBytes + kAScaleBytes + kBScaleBytes;
    // Slots of tensor memory for the scales of a step, 4 columns for each tile.
    static constexpr int kSlotColumns = kScaleTiles * 4 * (1 + kScaleTilesDown);
    static constexpr int kScaleSlots =
        kBlockScaled<T> ? std::min(kStages, (512 - kSumColumns) / std::max(1, kSlotColumns)) : 1;
    static constexpr int kUsedColumns = kSumColumns + kScaleSlots * kSlotColumns;
    static constexpr int kTensorColumns = kBlockScaled<T> ? 512 : kSumColumns;
    static_assert(kUsedColumns <= kTensorColumns && kTensorColumns <= 512 &&
                  (kTensorColumns & (kTensorColumns - 1)) == 0);
    static_assert(kColumns % 64 == 0, "the result is stored in boxes of 64 columns");

    // Groups of four warps that store, each some of the columns.
    static constexpr int kStoringGroups = kScaled<T> ? 2 : 1;
    static constexpr int kGroupColumns = kColumns / kStoringGroups;
    // Warps: copies, products, tensor memory, none, and those that store.
    static constexpr int kThreads = 128 + kStoringGroups * 128;
    static_assert(!kScaled<T> || (kColumns == kScaleBlock && kGroupColumns == 64));
    static_assert(!kBlockScaled<T> || kColumns == 128 || kColumns == 192,
                  "at most half of the first tile of scales belongs to the columns before");
    static_assert(!kBlockScaled<T> || kScaleSlots >= 2,
                  "a step's scales are copied while the "
                  "products of the one before run");
    static_assert(kScaleSteps == 1 || (kScaleTiles == 1 && kScaleSlots == kStages),
                  "a slot that several steps share is free when the stage of its last step is");

    struct SharedStorage : ScaleStages<kStages, kAScaleBytes, kBScaleBytes> {
        alignas(1024) std::uint8_t a[kStages][kBlockRows * 128];
        alignas(1024) std::uint8_t b[kStages][kBlockColumns * 128];
        // 32 rows by 64 columns per storing warp.
        alignas(1024) std::uint8_t out[kStoringGroups * 4][32 * 128];
        std::uint64_t full[kStages];     // a stage's bytes have arrived, in both blocks
        std::uint64_t empty[kStages];    // and have been read
        std::uint64_t summed[kBuffers];  // sums are complete
        std::uint64_t stored[kBuffers];  // and have been read, in both blocks
        std::uint32_t tensor_memory;
        TileList list;
    };
    // The storage is aligned by hand.
    static constexpr int kSharedBytes = sizeof(SharedStorage) + 1024;
    static_assert(kSharedBytes <= 227 * 1024, "too much shared memory");
};

}  // namespace gemm::blackwell
