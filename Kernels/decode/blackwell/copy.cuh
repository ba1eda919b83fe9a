// Copies of Blackwell's decode kernel: pages of the cache by TMA, queries by a warp.
#pragma once

#include <cstdint>

#include "Kernels/decode/blackwell/storage.cuh"
#include "Kernels/decode/merge.cuh"
#include "Kernels/device/bounded_rows.cuh"
#include "Kernels/device/fp8.cuh"
#include "Kernels/device/ptx/memory.cuh"
#include "Kernels/device/ptx/tma.cuh"

namespace decode::blackwell {

// Three codes whose sum, each times 2^-4 of the one before, is as good as fp16, of two values.
struct Codes {
    std::uint16_t terms[3];

    __device__ __forceinline__ explicit Codes(float2 pair) {
#pragma unroll
        for (std::uint16_t& term : terms) {
            term = ptx::e4m3_pair(pair.x, pair.y);
            const float2 taken = device::e4m3_floats(term);
            pair = {(pair.x - taken.x) * kTermScale, (pair.y - taken.y) * kTermScale};
        }
    }
};

// One warp, a lane per page of a tile. It runs ahead of the products, across segments, and copies
// in the order in which they read: keys of a tile, then values of the tile before.
template <class Tr>
class Copier {
  public:
    __device__ Copier(const Arguments& a, const Cache& cache, Storage<Tr>& shared)
        : a_(a),
          cache_(cache),
          shared_(shared),
          lane_(threadIdx.x % 32),
          box_tokens_(min(1 << a.page_shift, kTokens)) {}

    __device__ void run(const Work& work) {
        Box before = {};
        bool any = false;
        for_each_segment(a_, work, [&](const Segment& segment) {
            Box next = find(segment, segment.tile_begin);
            for (int tile = segment.tile_begin; tile < segment.tile_end; ++tile) {
                const Box box = next;
                // Found while this one is copied.
                if (tile + 1 < segment.tile_end) next = find(segment, tile + 1);
                copy(cache_.k, box);
                if (any) copy(cache_.v, before);
                before = box;
                any = true;
            }
        });
        if (any) copy(cache_.v, before);
    }

  private:
    // A lane's tokens of a tile: the pool's row and head where they begin, and how many there are.
    struct Box {
        int row;
        int head;
        int valid;
    };

    __device__ __forceinline__ Box find(const Segment& segment, int tile) const {
        const int token = tile * kTokens + lane_ * box_tokens_;
        const int valid = max(min(segment.length - token, box_tokens_), 0);
        if (lane_ * box_tokens_ >= kTokens || valid == 0) return {0, 0, 0};
        const int page = __ldg(a_.pages + segment.page_begin + (token >> a_.page_shift));
        const int in_page = token & ((1 << a_.page_shift) - 1);
        return cache_.head_major
                   ? Box{((page * cache_.kv_heads + segment.kv_head) << a_.page_shift) + in_page, 0,
                         valid}
                   : Box{(page << a_.page_shift) + in_page, segment.kv_head, valid};
    }

    __device__ __forceinline__ void copy(const CUtensorMap& map, const Box& box) {
#pragma unroll
        for (int part = 0; part < Tr::kParts; ++part) copy_part(map, box, part);
    }

    __device__ __forceinline__ void copy_part(const CUtensorMap& map, const Box& box, int part) {
        const int stage = ring_.stage;
        ptx::mbarrier_wait(&shared_.empty[stage], ring_.parity ^ 1);
        ring_.advance();
        // Bytes of other lanes may come first: the phase lasts until this arrival.
        if (lane_ == 0) ptx::mbarrier_expect_bytes(&shared_.full[stage], Tr::kStageBytes);
        if (lane_ * box_tokens_ >= kTokens) return;
#pragma unroll
        for (int chunk = 0; chunk < Tr::kChunks; ++chunk) {
            // Tokens past the end arrive as zeros: what a page has there may be NaN, which a weight
            // of zero would not cancel.
            ptx::load_box(
                shared_.ring[stage] + chunk * Tr::kChunkBytes + lane_ * box_tokens_ * Tr::kSpan,
                map, &shared_.full[stage],
                part * Tr::kPartDim + chunk * (Tr::kPartDim / Tr::kChunks), box.head,
                device::kFarRow - box.valid, box.row + box.valid, device::kFarRow);
        }
    }

    const Arguments& a_;
    const Cache& cache_;
    Storage<Tr>& shared_;
    const int lane_;
    const int box_tokens_;
    Ring<Tr::kStages> ring_;
};

// One warp; it runs a segment ahead of the products.
template <class Tr>
class QueryLoader {
  public:
    __device__ QueryLoader(const Arguments& a, Storage<Tr>& shared)
        : a_(a), shared_(shared), lane_(threadIdx.x % 32) {}

    __device__ void run(const Work& work) {
        Ring<Tr::kSlots> ring;
        const int first_row = work.row_block * Tr::kRows;
        for_each_segment(a_, work, [&](const Segment& segment) {
            if (segment.tile_begin >= segment.tile_end) return;
            ptx::mbarrier_wait(&shared_.queries_empty[ring.stage], ring.parity ^ 1);
            for (int row = 0; row < Tr::kRows; row += kRowsAtOnce) {
                load(segment, first_row, row, ring.stage);
            }
            // Products may read them.
            ptx::fence_async_proxy();
            __syncwarp();
            if (lane_ == 0) ptx::mbarrier_arrive(&shared_.queries_full[ring.stage]);
            ring.advance();
        });
    }

  private:
    static constexpr int kRowsAtOnce = 16;
    // Of a row in memory, whose elements have 16 bits.
    static constexpr int kPackets = Tr::kDim / 8;
    static constexpr int kLaneElements = Tr::kDim / 32;

    __device__ __forceinline__ bool exists(int row) const { return row < a_.rows; }
    __device__ __forceinline__ const std::uint8_t* address(const Segment& segment, int row) const {
        return static_cast<const std::uint8_t*>(a_.q) + tensor_row(a_, segment, row) * Tr::kDim * 2;
    }

    // Rows that do not exist are zeros; their results are never stored.
    __device__ __forceinline__ void load(const Segment& segment, int first_row, int from,
                                         int slot) {
        if constexpr (Tr::kFp8) {
            load_as_codes(segment, first_row, from, slot);
        } else {
            constexpr int kLoads = kRowsAtOnce * kPackets / 32;
            uint4 packets[kLoads];
#pragma unroll
            for (int index = 0; index < kLoads; ++index) {
                const int row = from + (index * 32 + lane_) / kPackets;
                packets[index] = {0, 0, 0, 0};
                if (!exists(first_row + row)) continue;
                packets[index] =
                    __ldg(reinterpret_cast<const uint4*>(address(segment, first_row + row)) +
                          lane_ % kPackets);
            }
#pragma unroll
            for (int index = 0; index < kLoads; ++index) {
                const int row = from + (index * 32 + lane_) / kPackets;
                reinterpret_cast<uint4*>(
                    shared_.queries[slot])[lane_ % kPackets * Tr::kRows + row] = packets[index];
            }
        }
    }

    // A power of two brings a row's largest element to the upper end of e4m3's range.
    __device__ __forceinline__ void load_as_codes(const Segment& segment, int first_row, int from,
                                                  int slot) {
        constexpr int kPairs = kLaneElements / 2;
        std::uint32_t words[kRowsAtOnce][kPairs];
#pragma unroll
        for (int row = 0; row < kRowsAtOnce; ++row) {
#pragma unroll
            for (int pair = 0; pair < kPairs; ++pair) {
                words[row][pair] = 0;
                if (!exists(first_row + from + row)) continue;
                words[row][pair] = __ldg(reinterpret_cast<const std::uint32_t*>(
                                             address(segment, first_row + from + row)) +
                                         lane_ * kPairs + pair);
            }
        }
#pragma unroll
        for (int row = 0; row < kRowsAtOnce; ++row) {
            float2 pairs[kPairs];
            float largest = 0.0f;
#pragma unroll
            for (int pair = 0; pair < kPairs; ++pair) {
                pairs[pair] = unpack_pair(words[row][pair], a_.is_bf16);
                largest = fmaxf(largest, fmaxf(fabsf(pairs[pair].x), fabsf(pairs[pair].y)));
            }
            largest = largest_of_warp(largest);
            // To an exponent of 7; powers of two have exponent fields 1 to 254.
            const std::uint32_t exponent = __float_as_uint(largest) >> 23;
            const std::uint32_t up = min(127 + 7 + 127 - exponent, 254u);
            const float scale = __uint_as_float(up << 23);
#pragma unroll
            for (int pair = 0; pair < kPairs; ++pair) {
                const Codes codes({pairs[pair].x * scale, pairs[pair].y * scale});
                const int element = lane_ * kLaneElements + pair * 2;
#pragma unroll
                for (int term = 0; term < Tr::kTerms; ++term) {
                    const int packet =
                        element / Tr::kPacket * Tr::kColumns + term * Tr::kRows + from + row;
                    *reinterpret_cast<std::uint16_t*>(shared_.queries[slot] + packet * 16 +
                                                      element % Tr::kPacket) = codes.terms[term];
                }
            }
            if (lane_ == 0) {
                shared_.query_scales[slot][from + row] = __uint_as_float((254 - up) << 23);
            }
        }
    }

    const Arguments& a_;
    Storage<Tr>& shared_;
    const int lane_;
};

}  // namespace decode::blackwell
