// Shared by the parts of Hopper's kernel: its shape, its shared memory, and the ring of stages.
#pragma once

#include <cstdint>
#include <numeric>
#include <type_traits>

#include "Kernels/device/ptx/mbarrier.cuh"
#include "Kernels/device/ptx/tma.cuh"
#include "Kernels/device/ptx/wgmma.cuh"
#include "Kernels/gemm/element.cuh"
#include "Kernels/gemm/hopper/split.cuh"
#include "Kernels/gemm/hopper/tiles.h"
#include "Kernels/gemm/ring.cuh"
#include "Kernels/gemm/scheduler.cuh"

namespace gemm::hopper {

struct Operands {
    Walk walk;
    Split split;
    CUtensorMap a;      // {k, rows, groups of a masked layout or 1}
    CUtensorMap b;      // {k, n, groups}
    CUtensorMap out;    // {n, rows}; not for masked layouts
    bool stores_boxes;  // by TMA through `out`, if the tile has room for it
};

template <class T, Layout kLayoutValue, Cluster kClusterValue, int kRowsValue, int kColumnsValue,
          int kStagesValue, int kBlocksValue, bool kTransposedValue>
struct Traits {
    using Element = T;
    using Out = OutOf<T>;
    // Where L2 is cold, instructions come from memory too: a short product waits for code that it
    // skips. So kernels are built for one layout, and dense ones with split-K or without.
    static constexpr Layout kLayout = kLayoutValue;
    static constexpr Cluster kCluster = kClusterValue;
    static constexpr bool kSplits = kCluster == Cluster::kSplit;
    static constexpr bool kPairs = kCluster == Cluster::kStacked || kCluster == Cluster::kBeside;
    static constexpr int kDown = kCluster == Cluster::kStacked ? 2 : 1;  // tiles of a pair
    static constexpr int kAcross = kCluster == Cluster::kBeside ? 2 : 1;
    static constexpr int kRows = kRowsValue;
    static constexpr int kColumns = kColumnsValue;
    static constexpr int kStages = kStagesValue;
    static constexpr int kBlocks = kBlocksValue;  // per SM
    // The kernel sees the product of b and a, and stores what it sums transposed.
    static constexpr bool kTransposed = kTransposedValue;
    static constexpr int kConsumers = kRows > 64 ? kRows / 64 : 1;
    static constexpr int kThreads = 128 * (1 + kConsumers);
    // Two consumers ping-pong over whole tiles if registers hold the sums: one runs its epilogue
    // while the other sums. Not with FP8, whose sums are promoted to totals: each has half of every
    // tile, and one adds while the other's products are in flight.
    static constexpr bool kAlternates = !kScaled<T> && kConsumers == 2 && kColumns <= 192;
    static constexpr int kHalves = kAlternates ? 2 : 1;  // 64-row halves per consumer
    // FP8, large tiles: the scales of b come with the stage. Smaller ones are done with its
    // products before the warp that brings them is ready for the next.
    static constexpr bool kStagesColumnScales = kScaled<T> && kConsumers == 2 && kColumns >= 128;
    // Arrivals that release a stage (`release`): one per warp that reads it, or per lane.
    static constexpr bool kLanesRelease = kScaled<T> && !kStagesColumnScales;
    static constexpr int kReaders =
        (kAlternates ? 4 : kConsumers * 4) * (kLanesRelease ? 32 : 1) * (kPairs ? 2 : 1);
    static_assert(!kPairs || (!kScaled<T> && kLayout == Layout::kDense), "scales would go astray");
    // Rows of the boxes that operands are loaded in.
    static constexpr int kBoxA = kRowsValue / kAcross;
    static constexpr int kBoxB = kColumnsValue / kDown;
    static constexpr int kStageBytes = 128;  // of k, per row
    static constexpr int kDepth = kStageBytes / sizeof(T);
    // Columns that a warp turns into whole lines at a time.
    static constexpr int kChunk = kColumns % 64 == 0 ? 64 : kColumns % 32 == 0 ? 32 : 16;

    static constexpr int kRingBytes = kStages * (kRows + kColumns) * kStageBytes;

    // Tall tiles have room for their whole result, so that it is stored while the next tile is
    // summed. The rest of the 227 KiB holds scales and the list of tiles.
    static constexpr bool kStoresBoxes =
        kConsumers > 1 && kRingBytes + kRows * kColumns * 2 <= 216 * 1024;
    static constexpr int kStagedChunks = kStoresBoxes ? kColumns / kChunk : 1;
    // What is staged at a time: a warp's 16 rows of a chunk. Transposed: a consumer's 64 rows of
    // eight columns, each column a line.
    static constexpr int kStagers = kTransposed ? kConsumers : kConsumers * 4;
    static constexpr int kStagedBoxes = !kTransposed    ? kStagedChunks
                                        : kColumns < 64 ? kColumns / 8
                                                        : 8;
    static constexpr int kBoxBytes = (kTransposed ? 64 * 8 : 16 * kChunk) * 2;

    static_assert(kRows <= 64 || kRows == 128 || kRows == 192, "a consumer has 64 rows");
    // A block starts with as many registers per thread as fit; the producer keeps 40 of its own.
    static constexpr int kStartRegisters = 65536 / (kThreads * kBlocks) / 8 * 8;
    static constexpr int kConsumerRegisters =
        kConsumers == 1 ? 208 : (kStartRegisters * (1 + kConsumers) - 40) / kConsumers / 8 * 8;
    static_assert(kConsumerRegisters >= kHalves * kColumns / 2 + 40, "no room for the sums");
    static_assert(!kTransposed || (!kScaled<T> && kRows >= 64 && kColumns % 16 == 0),
                  "transposed tiles have no scales, whole rows, and pairs of eight columns");
    // Scales of b for one step: two if a tile may start in the middle of a block of columns. So
    // many columns have the same.
    static constexpr int kColumnScales = kScaleBlock % kColumns == 0 ? 1 : 2;
    static constexpr int kScaledColumns =
        kColumnScales == 1 ? kColumns : std::gcd(kColumns, kScaleBlock);
    static_assert(!kScaled<T> || kColumns <= kScaleBlock + kScaledColumns,
                  "a tile has columns of three blocks of scales");

    struct SharedStorage {
        alignas(1024) std::uint8_t a[kStages][kRows * kStageBytes];
        alignas(1024) std::uint8_t b[kStages][kColumns * kStageBytes];
        // FP8: the scales of the tile's rows for a stage's 128 of k.
        alignas(128) float a_scales[kStages][kScaled<T> ? kRows : 4];
        alignas(1024) std::uint8_t out[kStagers][kStagedBoxes][kBoxBytes];
        std::uint64_t full[kStages];
        std::uint64_t empty[kStages];
        std::uint64_t collected;  // parts of a split-K tile's sums
        Tile tiles[kStages];      // by the first stage of each
        std::conditional_t<kLayout == Layout::kDense, NoList, TileList> list;
        // Of the tile's columns, if they come with the stage.
        float2 b_scales[kStagesColumnScales ? kStages : 1];
    };
    // The rows that instructions read past a short tile must exist.
    static_assert(kRows >= 64 || kColumns * kStageBytes * kStages >= 64 * kStageBytes,
                  "operands of a short tile reach beyond the stages");
    // Parts of a tile's sums, for up to eight blocks (split.cuh).
    static constexpr int kSumThreads = kAlternates ? 128 : kConsumers * 128;
    static_assert((kHalves * kColumns / 8 + 4) * kSumThreads * 16 <= kRingBytes,
                  "no room to collect");
    // The storage is aligned by hand.
    static constexpr int kSharedBytes = sizeof(SharedStorage) + 1024;
    static_assert(kSharedBytes <= 227 * 1024, "too much shared memory");
};

template <class Traits>
__device__ __forceinline__ auto split_of(const Operands& operands) {
    if constexpr (Traits::kSplits) {
        return operands.split;
    } else if constexpr (Traits::kPairs) {
        return Pair{};
    } else {
        return NoSplit{};
    }
}

// The tile of a number in the walk.
template <class Traits>
__device__ __forceinline__ Tile find_tile(const Gemm& p, const Operands& operands,
                                          typename Traits::SharedStorage& shared, int number) {
    constexpr int kRows = Traits::kRows * Traits::kDown;
    constexpr int kColumns = Traits::kColumns * Traits::kAcross;
    Tile tile = tile_at<kRows, kColumns>(p, Traits::kLayout, shared.list, operands.walk, number);
    // Of two tiles of a pair, the second may lie past the last row or column.
    const int rank = split_of<Traits>(operands).rank();
    if constexpr (Traits::kCluster == Cluster::kStacked) {
        tile.row += rank * Traits::kRows;
        tile.in_group += rank * Traits::kRows;
    }
    if constexpr (Traits::kCluster == Cluster::kBeside) tile.column += rank * Traits::kColumns;
    return tile;
}

// For 64 rows.
template <class Traits>
using Sums = float[Traits::kColumns / 2];

// For all rows of a consumer.
template <class Traits>
using Halves = Sums<Traits>[Traits::kHalves];

// Lower words of stage 0's descriptors. Taken from lane 0, which tells the compiler that they are
// warp-uniform: descriptors live in uniform registers.
struct Descriptors {
    unsigned a, b;
};

template <class Traits>
__device__ __forceinline__ Descriptors descriptors_of(typename Traits::SharedStorage& shared,
                                                      int first_row) {
    const std::uint8_t* rows = shared.a[0] + first_row * Traits::kStageBytes;
    const auto low = [](const void* at) {
        const std::uint64_t operand = ptx::depth_major_operand(ptx::shared_address(at));
        return __shfl_sync(~0u, static_cast<unsigned>(operand), 0);
    };
    return {low(rows), low(shared.b[0])};
}

template <class Traits>
__device__ __forceinline__ void multiply_stage(Descriptors first, int stage, int half,
                                               Sums<Traits>& sums, bool add) {
    constexpr std::uint64_t kUpper = ptx::kSwizzledOperand;
    const unsigned a = first.a + (stage * Traits::kRows + half * 64) * (Traits::kStageBytes / 16);
    const unsigned b = first.b + stage * (Traits::kColumns * Traits::kStageBytes / 16);
#pragma unroll
    for (int i = 0; i < Traits::kStageBytes / 32; ++i) {
        ptx::wgmma<typename Traits::Element>(sums, kUpper | (a + 2 * i), kUpper | (b + 2 * i),
                                             add || i > 0);
    }
}

// A warp signals that it has read a stage, to both blocks of a pair. With FP8 each lane has read
// scales: in large tiles, where products and copies leave shared memory little time, one lane
// arrives for all of them.
template <class Traits>
__device__ __forceinline__ void release(std::uint64_t& empty) {
    if constexpr (Traits::kStagesColumnScales) __syncwarp();
    const int lane = threadIdx.x % 32;
    if constexpr (Traits::kPairs) {
        if (lane < 2) ptx::mbarrier_arrive_read_at(ptx::peer_address(&empty, lane));
    } else {
        if (Traits::kLanesRelease || lane == 0) ptx::mbarrier_arrive(&empty);
    }
}

}  // namespace gemm::hopper
