// Arguments and shared memory of the decode kernel, and the copies that fill it.
#pragma once

#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

#include "Kernels/decode/decode.h"
#include "Kernels/device/ptx/cp_async.cuh"

namespace decode {

namespace ptx = device::ptx;

struct Arguments {
    const void* q;
    const void* k_pages;
    const void* v_pages;
    const std::int32_t* pages;
    void* out;
    Workspace workspace;
    int q_len;
    int heads;
    int group;
    int rows;
    int row_blocks;
    int page_shift;
    // In packets of 16 bytes.
    std::uint32_t page_stride;
    std::uint32_t token_stride;
    std::uint32_t head_stride;
    // Of scores to powers of two: scale * log2(e).
    float scale_log2;
    float value_scale;
    // The type of queries and output over an FP8 cache; else it is that of the kernel.
    bool is_bf16;
};

// An FP8 cache is multiplied as fp16, which holds all its values; T is then fp16 whatever the type
// of the queries is.
template <class Element, int kHeadDim, int kTiles, int kCacheBytes>
struct Traits {
    using T = Element;
    static constexpr bool kFp8 = kCacheBytes == 1;
    static constexpr int kDim = kHeadDim;
    static constexpr int kRowTiles = kTiles;
    static constexpr int kRows = kRowTiles * kTileRows;
    static constexpr int kThreads = kWarps * 32;
    static constexpr int kTokens = tile_tokens(kDim, kRowTiles, kCacheBytes);
    static constexpr int kRowBytes = kCacheBytes * kDim;
    static constexpr int kBytes = kTokens * kRowBytes;
    // Packets of a token's row, and rows that a warp copies with one instruction.
    static constexpr int kPackets = kRowBytes / 16;
    // Columns of a product, eight at a time, that a packet holds.
    static constexpr int kEightsPerPacket = 2 / kCacheBytes;
    static constexpr int kRowsPerCopy = 32 / kPackets;
    // As many bytes on their way whatever a tile has.
    static constexpr int kStages = 3 * kTileBytes / kBytes;
    static_assert(kTokens % 16 == 0 && kTokens <= 32, "a lane holds the place of one token");
    static_assert(!kFp8 || std::is_same_v<T, __half>, "FP8 is multiplied as fp16");
};

template <class Tr>
struct SharedStorage {
    alignas(128) std::uint8_t ring[kWarps][Tr::kStages][2][Tr::kBytes];
    // Sums on their way from one warp to another, one tile of rows at a time.
    float sums[kWarps / 2][kTileRows][Tr::kDim];
    float2 maxima[kWarps][Tr::kRows];
};

// Byte offset of a packet in a tile. Eight rows in turn, which are read together, have it in eight
// groups of banks.
template <class Tr>
__device__ __forceinline__ std::uint32_t place(int row, int packet) {
    if constexpr (Tr::kPackets >= 8) {
        return row * Tr::kRowBytes + ((packet ^ (row & 7)) << 4);
    } else {
        // Two rows share the 128 bytes of all banks.
        return row * Tr::kRowBytes + ((packet ^ (row >> 1 & 3)) << 4);
    }
}

// Fills one warp's ring, ahead of the multiplication and over the ends of segments.
template <class Tr>
class Loader {
  public:
    __device__ Loader(const Arguments& arguments, std::uint32_t ring, int segment, int segment_end)
        : a_(arguments), ring_(ring), segment_(segment), segment_end_(segment_end) {
        enter();
    }

    // Starts the copies of the next tile, if there is one; always closes a group.
    __device__ void copy_next() {
        if (segment_ < segment_end_) {
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
            stage_ = stage_ + 1 == Tr::kStages ? 0 : stage_ + 1;
            tile_ += kWarps;
            if (tile_ < tile_end_) {
                find_rows();
            } else {
                ++segment_;
                enter();
            }
        }
        ptx::commit_copies();
    }

  private:
    // Goes to the first segment from here on in which this warp has a tile.
    __device__ void enter() {
        for (; segment_ < segment_end_; ++segment_) {
            const Segment& segment = a_.workspace.segments[segment_];
            tile_ = segment.tile_begin + threadIdx.x / 32;
            tile_end_ = segment.tile_end;
            if (tile_ >= tile_end_) continue;
            last_token_ = segment.length - 1;
            pages_ = a_.pages + segment.page_begin;
            head_place_ = segment.kv_head * a_.head_stride;
            find_rows();
            return;
        }
    }

    // Each lane finds the row of one token: the load is waited for when the tile is copied. Tokens
    // past the end repeat the last one, and are masked.
    __device__ void find_rows() {
        const int lane = threadIdx.x % 32;
        const int token = min(tile_ * Tr::kTokens + lane % Tr::kTokens, last_token_);
        const std::uint32_t page = __ldg(pages_ + (token >> a_.page_shift));
        const std::uint32_t in_page = token & ((1 << a_.page_shift) - 1);
        row_place_ = page * a_.page_stride + in_page * a_.token_stride + head_place_;
    }

    const Arguments& a_;
    const std::uint32_t ring_;
    int segment_;
    const int segment_end_;
    int tile_ = 0;
    int tile_end_ = 0;
    int last_token_ = 0;
    const std::int32_t* pages_ = nullptr;
    std::uint32_t head_place_ = 0;
    // In packets; of token `lane` of the next tile.
    std::uint32_t row_place_ = 0;
    int stage_ = 0;
};

}  // namespace decode
