// Shapes, memories and barriers of Blackwell's decode kernel, and what its parts share.
//
// A stage of the ring is 128 tokens of keys or of values, as TMA writes them, and of heads of 256
// one half of the dimensions, since a product of values has 128 at most: chunks of 128 bytes of
// every token, or 64 where a token has no more, under the swizzle of that width. Queries and
// weights, which threads write, are packets of 16 bytes without a swizzle: queries [packet of the
// head][row], weights [packet of rows][token].
//
// FP8 codes are multiplied as they are. A query or a weight is then the sum of three codes, the
// second times 2^-4, the third times 2^-8, each with columns of its own: as exact as fp16.
#pragma once

#include <cuda.h>
#include <cuda_fp8.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "Kernels/decode/arguments.h"
#include "Kernels/decode/blackwell/tiles.h"
#include "Kernels/device/ptx/mbarrier.cuh"
#include "Kernels/device/ptx/pair.cuh"

namespace decode::blackwell {

namespace ptx = device::ptx;

// Warps: copies, products, tensor memory, queries, and four for the softmax.
constexpr int kSoftmaxThreads = 128;
constexpr int kSoftmaxWarps = kSoftmaxThreads / 32;
constexpr int kThreads = 128 + kSoftmaxThreads;
// Each code of a sum of three counts 2^-4 of the one before.
constexpr float kTermScale = 16.0f;

template <class Element, int kHeadDim, int kTiles, int kCacheBytes>
struct Traits {
    using T = Element;
    static constexpr bool kFp8 = kCacheBytes == 1;
    using Operand = std::conditional_t<kFp8, __nv_fp8_e4m3, T>;
    static constexpr int kDim = kHeadDim;
    static constexpr int kRowTiles = kTiles;
    static constexpr int kRows = kRowTiles * kTileRows;
    static constexpr int kTerms = kFp8 ? 3 : 1;
    // Of scores and of sums in tensor memory: [term][row].
    static constexpr int kColumns = kTerms * kRows;
    // Stages of a tile's keys, and of its values.
    static constexpr int kParts = kDim > 128 ? 2 : 1;
    static constexpr int kPartDim = kDim / kParts;
    // Two buffers of scores, then the sums of each part.
    static constexpr int kUsedColumns = (2 + kParts) * kColumns;
    static constexpr int kTensorColumns = kUsedColumns <= 64    ? 64
                                          : kUsedColumns <= 128 ? 128
                                          : kUsedColumns <= 256 ? 256
                                                                : 512;
    static_assert(kUsedColumns <= 512, "two buffers of scores and the sums exceed tensor memory");

    static constexpr int kRowBytes = kDim * kCacheBytes;
    static constexpr int kPartBytes = kRowBytes / kParts;
    static constexpr int kSpan = std::min(kPartBytes, 128);
    static constexpr int kChunks = kPartBytes / kSpan;
    static constexpr int kChunkBytes = kTokens * kSpan;
    static constexpr int kStageBytes = kTokens * kPartBytes;
    // Elements per packet, and of a product's depth.
    static constexpr int kPacket = 16 / kCacheBytes;
    static constexpr int kDepth = 2 * kPacket;
    // Segments whose queries are there; those of 64 rows would take the place of a stage.
    static constexpr int kSlots = kRowTiles == 4 ? 1 : 2;
    static constexpr int kQueryBytes = kColumns * kRowBytes;
    static constexpr int kWeightBytes = kColumns * kTokens * kCacheBytes;
    static constexpr int kReceivedBytes = kRows * kDim * 4;
    static constexpr int kStages = std::min(
        16, (222 * 1024 - kSlots * kQueryBytes - 2 * kWeightBytes - kReceivedBytes) / kStageBytes);
};

template <class Tr>
struct Storage {
    std::uint8_t ring[Tr::kStages][Tr::kStageBytes];
    std::uint8_t queries[Tr::kSlots][Tr::kQueryBytes];
    std::uint8_t weights[2][Tr::kWeightBytes];
    // Sums of all blocks of the cluster for the dimensions that this one merges.
    float received[Tr::kDim * Tr::kRows];
    float2 received_maxima[kMostClusterBlocks][Tr::kRows];
    // What the softmax's warps tell each other of a row: maxima, and totals.
    float maxima[kSoftmaxWarps][Tr::kRows];
    float totals[kSoftmaxWarps][Tr::kRows];
    // Scores, in base 2, that a row's weights are relative to, and what the last change of them
    // scales sums by.
    float references[Tr::kRows];
    float factors[Tr::kRows];
    // Of FP8: what brings a row of scores back to the queries' scale.
    float query_scales[Tr::kSlots][Tr::kRows];
    std::uint64_t full[Tr::kStages];
    std::uint64_t empty[Tr::kStages];
    std::uint64_t queries_full[Tr::kSlots];
    std::uint64_t queries_empty[Tr::kSlots];
    std::uint64_t scores_full[2];
    std::uint64_t weights_full[2];
    std::uint64_t sums_full[2];
    std::uint64_t received_full;
    std::uint32_t tensor_memory;
};
// Stages must start at multiples of 1024 bytes, which shared memory itself may not.
template <class Tr>
constexpr int kSharedBytes = sizeof(Storage<Tr>) + 1024;

// The pool as rows of tokens (launch.cuh).
struct Cache {
    CUtensorMap k;
    CUtensorMap v;
    int kv_heads;
    bool head_major;
    // Blocks that merge the parts of an item among themselves; 1 if parts go to the workspace.
    int cluster_blocks;
};

// What a block works on.
struct Work {
    int share;
    int row_block;

    __device__ Work(const Arguments& a, int cluster_blocks) {
        const int cluster = blockIdx.x / cluster_blocks;
        const int item = a.row_blocks.quotient(cluster);
        share = item * cluster_blocks + blockIdx.x % cluster_blocks;
        row_block = cluster - item * a.row_blocks.value;
    }
};

// Calls `body` with every segment of a share.
template <class Body>
__device__ __forceinline__ void for_each_segment(const Arguments& a, const Work& work, Body body) {
    for (int index = first_segment(a, work.share); index >= 0;) {
        const Segment segment = segment_of(a, index);
        index = segment.next;
        body(segment);
    }
}

// Position in a ring of stages.
template <int kStages>
struct Ring {
    int stage = 0;
    unsigned parity = 0;

    __device__ void advance() {
        stage = stage + 1 == kStages ? 0 : stage + 1;
        if (stage == 0) parity ^= 1;
    }
};

// The row's place among queries or results, in rows of the tensor; `row` counts from the first of
// the sequence and KV head.
__device__ __forceinline__ std::int64_t tensor_row(const Arguments& a, const Segment& segment,
                                                   int row) {
    const int query = a.group.quotient(row);
    const int head = (segment.kv_head - query) * a.group.value + row;
    return (static_cast<std::int64_t>(segment.sequence) * a.q_len + query) * a.heads + head;
}

}  // namespace decode::blackwell
