// Selected-block attention on warp-wide tensor-core products; serves sm_90a and sm_100a alike.
//
// A block of kWarps warps computes one query token and one group: its heads are the 16 rows of the
// products, padded if a group has fewer. The keys of the selected blocks are split into chunks of
// kChunk; warp w takes every kWarps-th chunk through its private ring in shared memory, so warps
// never wait for each other. At the end the warps' sums are merged.
//
// Shared memory: per warp, kStages stages of kChunk keys and values, laid out as in chunk.cuh. The
// merge reuses it for fp32 sums.
#pragma once

#include <cstdint>

#include "Kernels/device/ptx/cp_async.cuh"
#include "Kernels/nsa/chunk.cuh"
#include "Kernels/nsa/nsa.h"

namespace nsa {

template <class Element, int kHeadDim, int kWarpCount, int kChunkKeys, int kStageCount>
struct SelectedTraits {
    using T = Element;
    static constexpr int kWarps = kWarpCount;
    static constexpr int kChunk = kChunkKeys;
    static constexpr int kDim = kHeadDim;
    static constexpr int kStages = kStageCount;
    static constexpr int kUnits = kDim / 8;
    static constexpr int kTensorBytes = kChunk * kDim * 2;
    static constexpr int kStageBytes = 2 * kTensorBytes;
    static constexpr int kWarpBytes = kStages * kStageBytes;
    static constexpr int kSharedBytes = kWarps * kWarpBytes;
    static constexpr int kDepth = kDim / 16;
    static_assert(kDim % 64 == 0, "units are swizzled in eights");
    static_assert(kRows * kDim * 4 <= kWarpBytes, "the merge needs a warp's ring for fp32 sums");
    static_assert(kChunk % 16 == 0, "products take 16 keys at a time");
    static_assert(kStages >= 2, "one stage is read while another is filled");
};

// The chunks of one warp of kWarps, in order.
template <int kWarps, int kChunk>
class Chunks {
  public:
    // Lane i holds the i-th selected block.
    __device__ Chunks(const Selected& params, std::int64_t row, int position, int warp)
        : position_(position),
          block_(params.block),
          per_block_(params.block / kChunk),
          total_(params.selected * per_block_),
          next_(warp) {
        const int lane = threadIdx.x % 32;
        mine_ = lane < params.selected ? params.blocks[row * params.selected + lane] : -1;
    }

    // First key of the next chunk that the query sees; -1 after the last.
    __device__ int next() {
        while (next_ < total_) {
            const int place = next_ / per_block_;
            const int block = __shfl_sync(0xffffffffu, mine_, place);
            const int first = block * block_ + (next_ - place * per_block_) * kChunk;
            next_ += kWarps;
            if (block >= 0 && first <= position_) return first;
        }
        return -1;
    }

  private:
    const int position_;
    const int block_;
    const int per_block_;
    const int total_;
    int next_;
    int mine_;
};

// Rows past the end of the sequence repeat its last one: they are masked, but must be readable.
template <class Traits>
__device__ __forceinline__ void load_chunk(const Selected& params, std::int64_t sequence_row,
                                           int group, int first, uint32_t stage) {
    using T = typename Traits::T;
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int step = 0; step < Traits::kChunk * Traits::kUnits / 32; ++step) {
        const int index = step * 32 + lane;
        const int row = index / Traits::kUnits;
        const int unit = index % Traits::kUnits;
        const std::int64_t key = sequence_row + min(first + row, params.sequence - 1);
        const std::int64_t offset = (key * params.groups + group) * Traits::kDim + unit * 8;
        const uint32_t place = stage + place_of<Traits>(row, unit);
        device::ptx::copy_async_16(place, static_cast<const T*>(params.keys) + offset);
        device::ptx::copy_async_16(place + Traits::kTensorBytes,
                                   static_cast<const T*>(params.values) + offset);
    }
}

// Rows of one query: all see the chunk's first keys, at least one.
template <int kChunk>
struct UpTo {
    static constexpr bool kMayHideRows = false;
    int visible;
    __device__ bool hides_some() const { return visible < kChunk; }
    __device__ bool hides(int, int key) const { return key >= visible; }
};

// What the warps leave for the merge, besides their sums in the rings.
template <int kWarps>
struct Merge {
    float largest[kWarps][kRows];
    float total[kWarps][kRows];
};

template <class Traits>
__device__ __forceinline__ void leave_sums(const Sums<Traits>& sums, int warp, float* ring,
                                           Merge<Traits::kWarps>& merge) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const int row = lane / 4 + 8 * half;
        float total = sums.total[half];
        total += __shfl_xor_sync(0xffffffffu, total, 1);
        total += __shfl_xor_sync(0xffffffffu, total, 2);
        if (lane % 4 == 0) {
            merge.largest[warp][row] = sums.largest[half];
            merge.total[warp][row] = total;
        }
#pragma unroll
        for (int tile = 0; tile < Traits::kDim / 8; ++tile) {
            float2* place = reinterpret_cast<float2*>(ring + row * Traits::kDim + tile * 8);
            place[lane % 4] = {sums.out[tile][2 * half], sums.out[tile][2 * half + 1]};
        }
    }
}

// Eight threads write a row.
template <class Traits>
__device__ __forceinline__ void write_merged(const Selected& params, std::int64_t first_head,
                                             int row, float scale_log2, const float* rings,
                                             const Merge<Traits::kWarps>& merge) {
    using T = typename Traits::T;
    constexpr int kWarps = Traits::kWarps;
    constexpr int kShare = Traits::kDim / 8;
    float largest = merge.largest[0][row];
#pragma unroll
    for (int warp = 1; warp < kWarps; ++warp) largest = fmaxf(largest, merge.largest[warp][row]);
    float total = 0.0f;
    float out[kShare] = {};
#pragma unroll
    for (int warp = 0; warp < kWarps; ++warp) {
        // 0 for a warp that had no chunk.
        const float share =
            device::ptx::exp2_fast((merge.largest[warp][row] - largest) * scale_log2);
        total = fmaf(share, merge.total[warp][row], total);
        const float* sums =
            rings + warp * (Traits::kWarpBytes / 4) + row * Traits::kDim + threadIdx.x % 8 * kShare;
#pragma unroll
        for (int element = 0; element < kShare; ++element) {
            out[element] = fmaf(share, sums[element], out[element]);
        }
    }
    const float inverse = 1.0f / total;
    const std::int64_t head = first_head + row;
    T* place = static_cast<T*>(params.out) + head * Traits::kDim + threadIdx.x % 8 * kShare;
#pragma unroll
    for (int packet = 0; packet < kShare / 8; ++packet) {
        float values[8];
#pragma unroll
        for (int element = 0; element < 8; ++element) {
            values[element] = out[packet * 8 + element] * inverse;
        }
        reinterpret_cast<uint4*>(place)[packet] = device::pack<T>(values);
    }
    if (threadIdx.x % 8 == 0) params.lse[head] = largest * params.scale + logf(total);
}

template <class Traits>
__global__ void __launch_bounds__(Traits::kWarps * 32)
    selected_kernel(const __grid_constant__ Selected params) {
    using T = typename Traits::T;
    constexpr int kWarps = Traits::kWarps;
    extern __shared__ __align__(128) unsigned char shared[];
    __shared__ Merge<kWarps> merge;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const std::int64_t row = blockIdx.x;
    const std::int64_t token = row / params.groups;
    const int group = static_cast<int>(row - token * params.groups);
    const int position = static_cast<int>(token % params.sequence);
    const std::int64_t sequence_row = token - position;
    const int per_group = params.heads / params.groups;
    const float scale_log2 = params.scale * kLog2E;

    Chunks<kWarps, Traits::kChunk> chunks(params, row, position, warp);
    const uint32_t ring = device::ptx::shared_address(shared) + warp * Traits::kWarpBytes;
    // First keys of the chunks in the ring, oldest first.
    int firsts[Traits::kStages];
#pragma unroll
    for (int stage = 0; stage < Traits::kStages - 1; ++stage) {
        firsts[stage] = chunks.next();
        if (firsts[stage] >= 0) {
            load_chunk<Traits>(params, sequence_row, group, firsts[stage],
                               ring + stage * Traits::kStageBytes);
        }
        device::ptx::commit_copies();
    }

    uint32_t query[Traits::kDepth][4];
    const std::int64_t first_head = token * params.heads + group * per_group;
    load_query<Traits>(query, [&](int head) -> const T* {
        const T* queries = static_cast<const T*>(params.queries) + first_head * Traits::kDim;
        return head < per_group ? queries + head * Traits::kDim : nullptr;
    });

    Sums<Traits> sums = {};
    sums.largest[0] = sums.largest[1] = -INFINITY;
    int stage = 0;
    while (firsts[0] >= 0) {
        // This lane's oldest chunk has arrived; after the barrier so has every lane's, and everyone
        // is done with the stage that is filled next.
        device::ptx::wait_for_copies<Traits::kStages - 2>();
        __syncwarp();
        const int filled = stage == 0 ? Traits::kStages - 1 : stage - 1;
        firsts[Traits::kStages - 1] = chunks.next();
        if (firsts[Traits::kStages - 1] >= 0) {
            load_chunk<Traits>(params, sequence_row, group, firsts[Traits::kStages - 1],
                               ring + filled * Traits::kStageBytes);
        }
        device::ptx::commit_copies();
        attend_chunk<Traits>(query, ring + stage * Traits::kStageBytes,
                             UpTo<Traits::kChunk>{position + 1 - firsts[0]}, scale_log2, sums);
#pragma unroll
        for (int place = 0; place < Traits::kStages - 1; ++place) {
            firsts[place] = firsts[place + 1];
        }
        stage = stage == Traits::kStages - 1 ? 0 : stage + 1;
    }
    // No copy may still land in the ring, and all lanes have read it: it now holds the sums.
    device::ptx::wait_for_copies<0>();
    __syncwarp();
    float* rings = reinterpret_cast<float*>(shared);
    leave_sums<Traits>(sums, warp, rings + warp * (Traits::kWarpBytes / 4), merge);
    // All warps' sums are written before anyone merges them.
    __syncthreads();
    for (int row_of_group = threadIdx.x / 8; row_of_group < per_group; row_of_group += kWarps * 4) {
        write_merged<Traits>(params, first_head, row_of_group, scale_log2, rings, merge);
    }
}

}  // namespace nsa
