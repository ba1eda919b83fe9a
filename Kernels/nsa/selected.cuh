// Selected-block attention on warp-wide tensor-core products; served by sm_90a and sm_100a alike.
//
// A block of kWarps warps does one query token and one group: its heads are the 16 rows of the
// products, padded where a group has fewer. The keys of the selected blocks are cut into chunks of
// kChunk; warp w takes every kWarps-th chunk, through a ring of its own in shared memory, so warps
// never wait for each other. At the end the warps' sums are merged.
//
// Shared memory: for each warp kStages stages of kChunk keys and values, rows of kDim elements in
// units of 16 bytes, unit u of row r at place u ^ (r % 8): loads of matrices are free of conflicts.
// The merge uses the same memory for fp32 sums.
#pragma once

#include <cstdint>

#include "Kernels/device/convert.cuh"
#include "Kernels/device/ptx/cp_async.cuh"
#include "Kernels/device/ptx/math.cuh"
#include "Kernels/device/ptx/warp_mma.cuh"
#include "Kernels/nsa/nsa.h"

namespace nsa {

constexpr int kRows = 16;
constexpr float kLog2E = 1.44269504088896340736f;

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

template <class Traits>
__device__ __forceinline__ uint32_t place_of(int row, int unit) {
    return static_cast<uint32_t>(row * Traits::kDim * 2 + (unit ^ (row % 8)) * 16);
}

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

// Rows of the products: this thread's are quad and quad + 8.
template <class Traits>
struct Sums {
    float out[Traits::kDim / 8][4];
    float largest[2];
    float total[2];
};

// One chunk: scores, softmax so far, weighted values.
template <class Traits>
__device__ __forceinline__ void attend_chunk(const uint32_t (&query)[Traits::kDepth][4],
                                             uint32_t stage, int visible, float scale_log2,
                                             Sums<Traits>& sums) {
    using T = typename Traits::T;
    constexpr int kTiles = Traits::kChunk / 8;
    const int lane = threadIdx.x % 32;
    float scores[kTiles][4] = {};
#pragma unroll
    for (int depth = 0; depth < Traits::kDepth; ++depth) {
#pragma unroll
        for (int tile = 0; tile < kTiles; tile += 2) {
            uint32_t keys[4];
            const int row = tile * 8 + lane / 16 * 8 + lane % 8;
            const int unit = 2 * depth + lane / 8 % 2;
            device::ptx::load_matrices(keys, stage + place_of<Traits>(row, unit));
            device::ptx::multiply_add(scores[tile], query[depth], keys[0], keys[1], T{});
            device::ptx::multiply_add(scores[tile + 1], query[depth], keys[2], keys[3], T{});
        }
    }
    if (visible < Traits::kChunk) {
#pragma unroll
        for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
            for (int place = 0; place < 4; ++place) {
                const int key = tile * 8 + lane % 4 * 2 + place % 2;
                if (key >= visible) scores[tile][place] = -INFINITY;
            }
        }
    }
    uint32_t weights[kTiles / 2][4];
    float shrink[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        float largest = sums.largest[half];
#pragma unroll
        for (const auto& tile : scores) {
            largest = fmaxf(largest, fmaxf(tile[2 * half], tile[2 * half + 1]));
        }
        // Finite: every chunk has a key that the query sees.
        largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, 1));
        largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, 2));
        shrink[half] = device::ptx::exp2_fast((sums.largest[half] - largest) * scale_log2);
        sums.largest[half] = largest;
        const float offset = largest * scale_log2;
        float total = 0.0f;
#pragma unroll
        for (int tile = 0; tile < kTiles; ++tile) {
            const float low =
                device::ptx::exp2_fast(fmaf(scores[tile][2 * half], scale_log2, -offset));
            const float high =
                device::ptx::exp2_fast(fmaf(scores[tile][2 * half + 1], scale_log2, -offset));
            total += low + high;
            weights[tile / 2][tile % 2 * 2 + half] = device::pack_pair(low, high, T{});
        }
        sums.total[half] = fmaf(sums.total[half], shrink[half], total);
    }
    // Most chunks raise no row's largest score.
    if (__any_sync(0xffffffffu, shrink[0] != 1.0f || shrink[1] != 1.0f)) {
#pragma unroll
        for (auto& tile : sums.out) {
            tile[0] *= shrink[0];
            tile[1] *= shrink[0];
            tile[2] *= shrink[1];
            tile[3] *= shrink[1];
        }
    }
#pragma unroll
    for (int step = 0; step < kTiles / 2; ++step) {
#pragma unroll
        for (int pair = 0; pair < Traits::kUnits / 2; ++pair) {
            uint32_t values[4];
            const int row = step * 16 + lane / 8 % 2 * 8 + lane % 8;
            const int unit = 2 * pair + lane / 16;
            device::ptx::load_matrices_transposed(
                values, stage + Traits::kTensorBytes + place_of<Traits>(row, unit));
            device::ptx::multiply_add(sums.out[2 * pair], weights[step], values[0], values[1], T{});
            device::ptx::multiply_add(sums.out[2 * pair + 1], weights[step], values[2], values[3],
                                      T{});
        }
    }
}

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
    const int lane = threadIdx.x % 32;
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
    const T* queries = static_cast<const T*>(params.queries) + first_head * Traits::kDim;
#pragma unroll
    for (int depth = 0; depth < Traits::kDepth; ++depth) {
#pragma unroll
        for (int word = 0; word < 4; ++word) {
            const int head = lane / 4 + word % 2 * 8;
            const int column = depth * 16 + lane % 4 * 2 + word / 2 * 8;
            query[depth][word] = head < per_group ? __ldg(reinterpret_cast<const unsigned*>(
                                                        queries + head * Traits::kDim + column))
                                                  : 0u;
        }
    }

    Sums<Traits> sums = {};
    sums.largest[0] = sums.largest[1] = -INFINITY;
    int stage = 0;
    while (firsts[0] >= 0) {
        // The oldest chunk of this lane has arrived; after the barrier that of every lane has, and
        // everyone is done with the stage that is filled next.
        device::ptx::wait_for_copies<Traits::kStages - 2>();
        __syncwarp();
        const int filled = stage == 0 ? Traits::kStages - 1 : stage - 1;
        firsts[Traits::kStages - 1] = chunks.next();
        if (firsts[Traits::kStages - 1] >= 0) {
            load_chunk<Traits>(params, sequence_row, group, firsts[Traits::kStages - 1],
                               ring + filled * Traits::kStageBytes);
        }
        device::ptx::commit_copies();
        attend_chunk<Traits>(query, ring + stage * Traits::kStageBytes, position + 1 - firsts[0],
                             scale_log2, sums);
#pragma unroll
        for (int place = 0; place < Traits::kStages - 1; ++place) {
            firsts[place] = firsts[place + 1];
        }
        stage = stage == Traits::kStages - 1 ? 0 : stage + 1;
    }
    // No copy may land in the ring any more, and all lanes have read it: it now takes the sums.
    device::ptx::wait_for_copies<0>();
    __syncwarp();
    float* rings = reinterpret_cast<float*>(shared);
    leave_sums<Traits>(sums, warp, rings + warp * (Traits::kWarpBytes / 4), merge);
    // Orders all warps' sums before anyone merges them.
    __syncthreads();
    for (int row_of_group = threadIdx.x / 8; row_of_group < per_group; row_of_group += kWarps * 4) {
        write_merged<Traits>(params, first_head, row_of_group, scale_log2, rings, merge);
    }
}

}  // namespace nsa
