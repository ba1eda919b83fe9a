// Shared memory of the decode kernel, and the copies that fill it.
#pragma once

#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

#include "Kernels/decode/merge.cuh"
#include "Kernels/device/ptx/cp_async.cuh"

namespace decode::portable {

// An FP8 cache is multiplied as fp16, which holds all its values; T is then fp16 whatever the
// queries' type.
template <class Element, int kHeadDim, int kTiles, int kCacheBytes>
struct Traits {
    using T = Element;
    static constexpr bool kFp8 = kCacheBytes == 1;
    static constexpr int kDim = kHeadDim;
    static constexpr int kMostWarps = most_warps(kDim);
    static constexpr int kRowTiles = kTiles;
    static constexpr int kRows = kRowTiles * kTileRows;
    static constexpr int kTokens = tile_tokens(kDim, kRowTiles, kCacheBytes);
    static constexpr int kRowBytes = kCacheBytes * kDim;
    static constexpr int kBytes = kTokens * kRowBytes;
    // Packets per token row, and rows that a warp copies per instruction.
    static constexpr int kPackets = kRowBytes / 16;
    // 8-column groups of a product per packet.
    static constexpr int kEightsPerPacket = 2 / kCacheBytes;
    static constexpr int kRowsPerCopy = 32 / kPackets;
    // The same bytes in flight whatever the tile size.
    static constexpr int kStages = 3 * tile_bytes(kDim) / kBytes;
    static_assert(kTokens % 16 == 0 && kTokens <= 32, "a lane holds the location of one token");
    static_assert(!kFp8 || std::is_same_v<T, __half>, "FP8 is multiplied as fp16");
};

// Rows of sums that a warp hands to its team at a time: half a tile.
constexpr int kHandedRows = kTileRows / 2;

// Per warp; those of a block are contiguous.
template <class Tr>
struct alignas(128) WarpStorage {
    std::uint8_t ring[Tr::kStages][2][Tr::kBytes];
    float sums[kHandedRows][Tr::kDim];
    float2 maxima[Tr::kRows];
};

// Byte offset of a packet in a tile. Eight consecutive rows, which are read together, fall into
// eight groups of banks.
template <class Tr>
__device__ __forceinline__ std::uint32_t place(int row, int packet) {
    if constexpr (Tr::kPackets >= 8) {
        return row * Tr::kRowBytes + ((packet ^ (row & 7)) << 4);
    } else {
        // Two rows span all banks, 128 bytes.
        return row * Tr::kRowBytes + ((packet ^ (row >> 1 & 3)) << 4);
    }
}

// Fills one warp's ring, ahead of the products and across segment boundaries.
template <class Tr>
class Loader {
  public:
    __device__ Loader(const Arguments& arguments, Team team, std::uint32_t ring, int segment)
        : a_(arguments), team_(team), ring_(ring), next_(segment) {
        enter();
    }

    // Issues the copies of the next tile, if any; always commits a group.
    __device__ void copy_next() {
        if (tile_ < tile_end_) {
            const int lane = threadIdx.x % 32;
            const int packet = lane % Tr::kPackets;
            const std::uint32_t keys = ring_ + stage_ * 2 * Tr::kBytes;
            const uint4* k = static_cast<const uint4*>(a_.k_pages);
            const uint4* v = static_cast<const uint4*>(a_.v_pages);
#pragma unroll
            for (int first = 0; first < Tr::kTokens; first += Tr::kRowsPerCopy) {
                const int row = first + lane / Tr::kPackets;
                const std::uint64_t from = __shfl_sync(0xffffffffu, row_place_, row) + packet;
                const std::uint32_t to = keys + place<Tr>(row, packet);
                ptx::copy_async_16(to, k + from);
                ptx::copy_async_16(to + Tr::kBytes, v + from);
            }
            tile_ += team_.warps;
            if (tile_ < tile_end_) {
                find_rows();
            } else {
                enter();
            }
        }
        ptx::commit_copies();
        stage_ = stage_ + 1 == Tr::kStages ? 0 : stage_ + 1;
    }

    // Location of the oldest tile, once copy_next has been called once per stage.
    __device__ std::uint32_t oldest() const { return ring_ + stage_ * 2 * Tr::kBytes; }

  private:
    // Advances to the next segment in which this warp has a tile.
    __device__ void enter() {
        while (next_ >= 0) {
            const Segment segment = segment_of(a_, next_);
            next_ = segment.next;
            tile_ = segment.tile_begin + team_.warp();
            tile_end_ = segment.tile_end;
            if (tile_ >= tile_end_) continue;
            last_token_ = segment.length - 1;
            page_begin_ = segment.page_begin;
            head_place_ = segment.kv_head * a_.head_stride;
            find_rows();
            return;
        }
    }

    // Each lane looks up the row of one token: the load completes when the tile is copied. Tokens
    // past the end repeat the last one and are masked.
    __device__ void find_rows() {
        const int lane = threadIdx.x % 32;
        const int token = min(tile_ * Tr::kTokens + lane % Tr::kTokens, last_token_);
        const std::uint32_t page = __ldg(a_.pages + page_begin_ + (token >> a_.page_shift));
        const std::uint32_t in_page = token & ((1 << a_.page_shift) - 1);
        row_place_ = page * a_.page_stride + in_page * a_.token_stride + head_place_;
    }

    const Arguments& a_;
    const Team team_;
    const std::uint32_t ring_;
    // The segment after the one being copied; -1 after the last.
    int next_;
    int tile_ = 0;
    int tile_end_ = 0;
    int last_token_ = 0;
    int page_begin_ = 0;
    std::uint32_t head_place_ = 0;
    // In packets; of token `lane` of the next tile.
    std::uint32_t row_place_ = 0;
    int stage_ = 0;
};

}  // namespace decode::portable
