// Shared memory of the latent-attention kernel, and the copies that fill it.
#pragma once

#include <cstdint>

#include "Kernels/device/ptx/cp_async.cuh"
#include "Kernels/mla/arguments.cuh"

namespace mla::portable {

namespace ptx = device::ptx;

// 16-byte packets per row of queries.
constexpr int kQueryPackets = kWidth * 2 / 16;
constexpr int kSteps = kWidth / 16;

template <class Element, int kCacheBytes, int kWarpRowTiles, int kRowsOfWarps, int kColumnsOfWarps,
          int kTileTokens, int kRingStages, int kResident>
struct Traits {
    using T = Element;
    static constexpr bool kFp8 = kCacheBytes == 1;
    // Of a token.
    static constexpr int kRowBytes = kWidth * kCacheBytes;
    static constexpr int kRowPackets = kRowBytes / 16;
    static constexpr int kPerPacket = 16 / kCacheBytes;
    static constexpr int kRowTiles = kWarpRowTiles;
    static constexpr int kWarpRows = kRowsOfWarps;
    static constexpr int kWarpColumns = kColumnsOfWarps;
    static constexpr int kTokens = kTileTokens;
    static constexpr int kStages = kRingStages;
    static constexpr int kBlocks = kResident;
    static constexpr int kRows = kRowTiles * kTileRows * kWarpRows;
    static constexpr int kThreads = 32 * kWarpRows * kWarpColumns;
    // A warp's share of the tokens and of the latent dimension.
    static constexpr int kWarpTokens = kTokens / kWarpColumns;
    static constexpr int kWarpDims = kLatent / kWarpColumns;
    // Few rows stay in registers; many are read from shared memory for every tile.
    static constexpr bool kQueriesShared = kRowTiles > 1;
    // Rows of a tile that eight threads copy.
    static constexpr int kCopyRows = kTokens / (kThreads / 8);
    static_assert(kWarpTokens == 8 || kWarpTokens == 16, "scores of a warp");
    static_assert(kWarpDims % 16 == 0, "sums of a warp");
    static_assert(kCopyRows * (kThreads / 8) == kTokens, "whole rows per thread");
    static_assert(kStages >= 2, "a tile is copied while another is used");

    static __device__ int warp_row() { return threadIdx.x / 32 / kWarpColumns; }
    static __device__ int warp_column() { return threadIdx.x / 32 % kWarpColumns; }
};

template <class Tr>
struct SharedStorage {
    alignas(1024) std::uint8_t ring[Tr::kStages][Tr::kTokens * Tr::kRowBytes];
    alignas(1024) std::uint8_t queries[Tr::kQueriesShared ? Tr::kRows * kWidth * 2 : 16];
    alignas(1024) std::uint8_t weights[Tr::kRows * Tr::kTokens * 2];
    // One per column of warps: largest scores of a tile; sums of weights at the end.
    float exchange[Tr::kRows][Tr::kWarpColumns];
};

// Byte offset of a packet in a tile of kRows queries or cache rows of 16-bit elements, stored as
// consecutive columns of 128 bytes. Rows that are read together differ in their low three bits,
// which spreads them over all banks.
template <int kRows>
__device__ __forceinline__ std::uint32_t place(int row, int packet) {
    return packet / 8 * (kRows * 128) + row * 128 + ((packet % 8 ^ (row & 7)) << 4);
}

// The same for a tile of the cache; rows of FP8 fill columns of 64 bytes.
template <class Tr>
__device__ __forceinline__ std::uint32_t cache_place(int row, int packet) {
    if constexpr (Tr::kFp8) {
        return packet / 4 * (Tr::kTokens * 64) + row * 64 + ((packet % 4 ^ (row >> 1 & 3)) << 4);
    } else {
        return place<Tr::kTokens>(row, packet);
    }
}

// The same for the weights, whose rows are 64 or 128 bytes.
template <class Tr>
__device__ __forceinline__ std::uint32_t weight_place(int row, int packet) {
    static_assert(Tr::kTokens == 32 || Tr::kTokens == 64,
                  "two rows of four packets, or one of eight");
    const int turn = Tr::kTokens == 64 ? row & 7 : row >> 1 & 3;
    return row * (Tr::kTokens * 2) + ((packet ^ turn) << 4);
}

// Fills the ring, ahead of the products and across segment boundaries.
template <class Tr>
class Loader {
  public:
    __device__ Loader(const Arguments& arguments, std::uint32_t ring, int segment, int segment_end)
        : a_(arguments), ring_(ring), segment_(segment), segment_end_(segment_end) {
        enter();
    }

    // Issues the copies of the next tile, if any; always commits a group.
    __device__ void copy_next() {
        if (segment_ < segment_end_) {
            const int packet = threadIdx.x % 8;
            const std::uint32_t tile = ring_ + stage_ * (Tr::kTokens * Tr::kRowBytes);
#pragma unroll
            for (int index = 0; index < Tr::kCopyRows; ++index) {
                const int row = threadIdx.x / 8 + index * (Tr::kThreads / 8);
                const std::uint64_t cached = cached_rows_[index];
                const uint4* from =
                    static_cast<const uint4*>(a_.cache) + cached * Tr::kRowPackets + packet;
#pragma unroll
                for (int first = 0; first < Tr::kRowPackets; first += 8) {
                    // Rows of FP8 end with half as many packets as there are threads.
                    if (first + 8 > Tr::kRowPackets && packet >= Tr::kRowPackets % 8) continue;
                    ptx::copy_async_16(tile + cache_place<Tr>(row, first + packet), from + first);
                }
            }
            stage_ = stage_ + 1 == Tr::kStages ? 0 : stage_ + 1;
            if (++tile_ < tile_end_) {
                find_rows();
            } else {
                ++segment_;
                enter();
            }
        }
        ptx::commit_copies();
    }

  private:
    // Advances to the first segment from here on that has a tile.
    __device__ void enter() {
        for (; segment_ < segment_end_; ++segment_) {
            const Segment& segment = a_.workspace.segments[segment_];
            tile_ = segment.tile_begin;
            tile_end_ = segment.tile_end;
            if (tile_ >= tile_end_) continue;
            last_token_ = segment.length - 1;
            pages_ = a_.pages + segment.page_begin;
            find_rows();
            return;
        }
    }

    // Loads that complete when the tile is copied. Masked tokens past the end repeat the last one.
    __device__ void find_rows() {
#pragma unroll
        for (int index = 0; index < Tr::kCopyRows; ++index) {
            const int row = threadIdx.x / 8 + index * (Tr::kThreads / 8);
            const int token = min(tile_ * Tr::kTokens + row, last_token_);
            const std::uint32_t page = __ldg(pages_ + (token >> a_.page_shift));
            const std::uint32_t in_page = token & ((1 << a_.page_shift) - 1);
            cached_rows_[index] = (page << a_.page_shift) + in_page;
        }
    }

    const Arguments& a_;
    const std::uint32_t ring_;
    int segment_;
    const int segment_end_;
    int tile_ = 0;
    int tile_end_ = 0;
    int last_token_ = 0;
    const std::int32_t* pages_ = nullptr;
    std::uint32_t cached_rows_[Tr::kCopyRows] = {};
    int stage_ = 0;
};

}  // namespace mla::portable
