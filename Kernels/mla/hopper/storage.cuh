// Shared memory and barriers of Hopper's latent-attention kernel, and the producer that fills them.
//
// A tile of 64 cached tokens is nine chunks: 64 tokens by 64 elements, rows of 128 bytes under the
// 128-byte swizzle. Eight are latent, the last is rope. Tiles of a segment alternate between two
// buffers; buffer b belongs to consumer b, which computes its scores. Consumer c sums chunks 4 c to
// 4 c + 3 of both. So that a buffer can be refilled early, its chunks arrive in the order in which
// they become free: those its owner sums, the others, rope.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "Kernels/device/ptx/mbarrier.cuh"
#include "Kernels/device/ptx/tma.cuh"
#include "Kernels/mla/arguments.cuh"

namespace mla::hopper {

namespace ptx = device::ptx;

constexpr int kChunks = kWidth / 64;
constexpr int kRopeChunk = kChunks - 1;
constexpr int kChunkBytes = 64 * 128;
constexpr int kBufferBytes = kChunks * kChunkBytes;
// A box is the part of a chunk that one copy fetches: tokens of one page.
constexpr int kBoxTokens = 32;
constexpr int kBoxes = 64 / kBoxTokens;
constexpr int kBoxBytes = kBoxTokens * 128;
// Chunks whose arrival is awaited together.
constexpr int kChunksOfGroup = 2;
constexpr int kGroups = (kChunks + kChunksOfGroup - 1) / kChunksOfGroup;
// Each fetches a box of one chunk of every group.
constexpr int kFetchingWarps = kBoxes * kChunksOfGroup;
// Positions in arrival order from here on become free later.
constexpr int kLateChunk = 4;

// Per-row messages between the consumers: a lane's two rows side by side.
struct RowExchange {
    float2 values[2][32];
    std::uint64_t told[2];
};

struct Storage {
    alignas(1024) std::uint8_t queries[kBufferBytes];
    // Once a buffer's scores are computed, its rope chunk takes their weights.
    alignas(1024) std::uint8_t cached[2][kBufferBytes];
    // The rows' largest scores; their sums of weights, alternating between two segments.
    RowExchange maxima;
    RowExchange totals[2];
    std::uint64_t queries_full;
    std::uint64_t queries_empty;
    std::uint64_t full[2][kGroups];
    // For the early and the late chunks.
    std::uint64_t empty[2][2];
};

struct Maps {
    CUtensorMap q;
    CUtensorMap cache;
};

// The chunk at a position in arrival order.
__device__ __forceinline__ int chunk_at(int buffer, int place) {
    return place == kRopeChunk ? kRopeChunk : place ^ (buffer * kLateChunk);
}

// A block's segments. The first comes with the bounds of all, so that it takes one load to find.
struct Share {
    const Segment* first;
    int begin;
    int end;

    __device__ __forceinline__ Share(const Arguments& a, int share)
        : first(a.workspace.first_segments + share),
          begin(first->share_begin),
          end(first->share_end) {}

    __device__ __forceinline__ Segment segment(const Arguments& a, int index) const {
        return index == begin ? *first : a.workspace.segments[index];
    }
};

// Fills the buffers, ahead of the consumers and across segment boundaries: four warps, because one
// takes too long to issue all copies of a tile. Each has one of a tile's two boxes in every other
// chunk. (Two blocks that read the same tokens for different rows could fetch half for each other;
// waiting for both costs more.)
class Producer {
  public:
    __device__ Producer(const Arguments& a, const Maps& maps, Storage& shared)
        : a_(a),
          maps_(maps),
          shared_(shared),
          lane_(threadIdx.x % 32),
          warp_(threadIdx.x / 32 % kFetchingWarps) {}

    __device__ void run(const Share& share, int row_block) {
        for (int index = share.begin; index < share.end; ++index) {
            const Segment segment = share.segment(a_, index);
            if (segment.tile_begin >= segment.tile_end) continue;
            fetch_queries(segment.sequence * a_.rows + row_block * 64);
            fetch_tiles(segment, row_block);
        }
    }

  private:
    __device__ void fetch_queries(int row) {
        ptx::mbarrier_wait(&shared_.queries_empty, queries_parity_ ^ 1);
        queries_parity_ ^= 1;
        if (lane_ != 0) return;
        const int chunks = (kChunks - warp_ + kFetchingWarps - 1) / kFetchingWarps;
        ptx::mbarrier_expect_bytes(&shared_.queries_full, chunks * kChunkBytes);
        for (int chunk = warp_; chunk < kChunks; chunk += kFetchingWarps) {
            ptx::load_box(shared_.queries + chunk * kChunkBytes, maps_.q, &shared_.queries_full,
                          chunk * 64, row);
        }
    }

    // The pool row at which a box of the sequence begins.
    __device__ int find_box(const Segment& segment, int box) const {
        const int token = box * kBoxTokens;
        if (token >= segment.length) return 0;
        const int page = __ldg(a_.pages + segment.page_begin + (token >> a_.page_shift));
        return (page << a_.page_shift) + (token & ((1 << a_.page_shift) - 1));
    }

    // In pairs: chunks in the order in which consumers release them.
    __device__ void fetch_tiles(const Segment& segment, int row_block) {
        // Each lane holds one box; the next 32 are looked up while these are fetched.
        const int first_box = segment.tile_begin * kBoxes;
        int known = find_box(segment, first_box + lane_);
        int known_next = find_box(segment, first_box + 32 + lane_);
        const int tiles = segment.tile_end - segment.tile_begin;
        // Blocks on the same tokens share the work of prefetching the next pair to L2. A single
        // block gains nothing from it.
        const bool prefetches = a_.row_blocks > 1 && warp_ % a_.row_blocks == row_block;
        for (int tile = 0; tile < tiles; tile += 2) {
            const int box = tile * kBoxes;
            if (box > 0 && box % 32 == 0) {
                known = known_next;
                known_next = find_box(segment, first_box + box + 32 + lane_);
            }
            const int mine = box + warp_ % kBoxes;
            const int first = __shfl_sync(0xffffffffu, known, mine % 32);
            const int second = __shfl_sync(0xffffffffu, known, (mine + kBoxes) % 32);
            const int left = segment.length - (segment.tile_begin + tile) * 64;
            const bool has_second = tile + 1 < tiles;
            fetch<0, kLateChunk>(0, first, left);
            if (has_second) fetch<0, kLateChunk>(1, second, left - 64);
            fetch<kLateChunk, kChunks>(0, first, left);
            if (has_second) fetch<kLateChunk, kChunks>(1, second, left - 64);
            parities_ ^= has_second ? 3 : 1;
            const int later = box + 2 * kBoxes + warp_;
            const int where = later / 32 == box / 32 ? known : known_next;
            const int row = __shfl_sync(0xffffffffu, where, later % 32);
            const int token = (first_box + later) * kBoxTokens;
            if (prefetches && lane_ == 0 && token < min(segment.length, segment.tile_end * 64)) {
                ptx::bulk_prefetch(static_cast<const char*>(a_.cache) +
                                       static_cast<std::int64_t>(row) * (kWidth * 2),
                                   kBoxTokens * kWidth * 2);
            }
        }
    }

    // This warp's part of positions kBegin to kEnd of a tile with `left` tokens; `row` is its
    // box's.
    template <int kBegin, int kEnd>
    __device__ void fetch(int buffer, int row, int left) {
        const int box = warp_ % kBoxes;
        const std::uint32_t parity = parities_ >> buffer & 1;
        ptx::mbarrier_wait(&shared_.empty[buffer][kBegin / kLateChunk], parity ^ 1);
        if (lane_ != 0) return;
#pragma unroll
        for (int place = kBegin; place < kEnd; ++place) {
            if (place % kChunksOfGroup != warp_ / kBoxes) continue;
            std::uint64_t* full = &shared_.full[buffer][place / kChunksOfGroup];
            // Data past the sequence's last box is left as it is; consumers do not use it.
            if (left <= box * kBoxTokens) {
                ptx::mbarrier_arrive(full);
                continue;
            }
            const int chunk = chunk_at(buffer, place);
            ptx::mbarrier_expect_bytes(full, kBoxBytes);
            ptx::load_box(shared_.cached[buffer] + chunk * kChunkBytes + box * kBoxBytes,
                          maps_.cache, full, chunk * 64, row);
        }
    }

    const Arguments& a_;
    const Maps& maps_;
    Storage& shared_;
    const int lane_;
    const int warp_;
    std::uint32_t queries_parity_ = 0;
    std::uint32_t parities_ = 0;
};

}  // namespace mla::hopper
