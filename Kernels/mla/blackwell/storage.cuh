// Memories and barriers of Blackwell's latent-attention kernel, and what its parts share.
//
// Everything in shared memory is chunks: 64 rows of 64 elements under the 128-byte swizzle. A stage
// is two of them. As keys they are 64 tokens by 128 elements, depth contiguous; as values the same
// tokens by 128 of the latent part, which the product reads across.
//
// Codes of an FP8 cache arrive as 64 rows of 128, without a swizzle, and become a stage.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "Kernels/device/ptx/pair.cuh"
#include "Kernels/mla/arguments.cuh"
#include "Kernels/mla/blackwell/tiles.h"

namespace mla::blackwell {

namespace ptx = device::ptx;

constexpr int kBlockRows = kRows / kBlocks;
constexpr int kBlockTokens = kTokens / kBlocks;
constexpr int kChunks = kWidth / 64;
constexpr int kChunkBytes = 64 * 128;
constexpr int kStageChunks = 2;
// Bytes of a stage as codes, and how many are under way.
constexpr int kCodeBytes = 64 * kStageChunks * 64;
constexpr int kCodeStages = 8;
// Stages of a tile's keys; the last has only the rotary chunk.
constexpr int kKeyStages = (kChunks + kStageChunks - 1) / kStageChunks;
// A product with values makes 256 columns of the sums: 128 from each block.
constexpr int kSumColumns = 256;
constexpr int kSumParts = kLatent / kSumColumns;
// Stages of a tile's values, by halves of its tokens.
constexpr int kValueStages = 2 * kSumParts;

static_assert(kBlockRows == 64 && kBlockTokens == 64, "a chunk has 64 rows");

// Warps: copies, products, tensor memory, none, four for the softmax, and four that convert codes.
constexpr int kSoftmaxThreads = 128;
constexpr int kConverterThreads = 128;
__host__ __device__ constexpr int threads_of(int cache_bytes) {
    return 128 + kSoftmaxThreads + (cache_bytes == 1 ? kConverterThreads : 0);
}

// Tensor memory of a block. A product of 128 rows over a pair leaves each block 64 of them, with
// the first half of the columns in lanes 0 to 63 and the second in lanes 64 to 127.
constexpr int kTensorColumns = 512;
__device__ constexpr std::uint32_t sums_at(int part) { return part * (kSumColumns / 2); }
__device__ constexpr std::uint32_t scores_at(unsigned step) {
    return kLatent / 2 + step % 2 * (kTokens / 2);
}

// The part of shared memory that only FP8 caches need.
template <int kCacheBytes>
struct Codes {};
template <>
struct Codes<1> {
    std::uint8_t codes[kCodeStages][kCodeBytes];
};

template <int kCacheBytes>
struct Storage : Codes<kCacheBytes> {
    static constexpr bool kFp8 = kCacheBytes == 1;
    static constexpr int kStages = kFp8 ? 4 : 8;

    std::uint8_t queries[kChunks][kChunkBytes];
    // The weights of a tile, by halves of its tokens.
    std::uint8_t weights[2][kChunkBytes];
    std::uint8_t stages[kStages][kStageChunks][kChunkBytes];
    // What the two threads of a row tell each other, in turns.
    float told[2][kSoftmaxThreads];
    std::uint64_t queries_full;
    std::uint64_t queries_empty;
    std::uint64_t full[kStages];
    std::uint64_t empty[kStages];
    std::uint64_t codes_full[kCodeStages];
    std::uint64_t codes_empty[kCodeStages];
    std::uint64_t scores_full[2];
    std::uint64_t weights_full;
    std::uint64_t sums_full;
    std::uint32_t tensor_memory;
};
// Chunks must start at multiples of 1024 bytes, which shared memory itself may not.
template <int kCacheBytes>
constexpr int kSharedBytes = sizeof(Storage<kCacheBytes>) + 1024;
static_assert(kSharedBytes<1> <= 227 * 1024, "too much shared memory");
static_assert(kSharedBytes<2> <= 227 * 1024, "too much shared memory");

// Both are matrices of rows of 576 (launch.cuh).
struct Maps {
    CUtensorMap q;
    CUtensorMap cache;
};

// What a pair works on.
struct Work {
    int begin;  // segments
    int end;
    int rank;       // of this block
    int first_row;  // of the pair, among a sequence's rows
};

// Waits for arrivals that may come from the other block.
__device__ __forceinline__ void wait(std::uint64_t* barrier, unsigned parity) {
    while (!ptx::mbarrier_try_wait_cluster(barrier, parity & 1)) {
    }
}

// Position in a ring of stages.
template <int kStages>
struct Ring {
    static_assert((kStages & (kStages - 1)) == 0, "counts may wrap");
    unsigned count = 0;

    __device__ int stage() const { return count % kStages; }
    __device__ unsigned parity() const { return count / kStages % 2; }
};

__device__ __forceinline__ int tiles_of(const Segment& segment) {
    return max(segment.tile_end - segment.tile_begin, 0);
}

}  // namespace mla::blackwell
