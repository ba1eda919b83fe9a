// Hopper's product: wgmma with operands brought by TMA, one producer and one or two consumers.
//
// A block walks over tiles of kRows x kColumns of the result. Warpgroup 0 produces: one thread
// fills a ring of stages, each 128 bytes of k of the tile's rows of a and b. The other warpgroups
// consume, 64 rows each. full[s] ends a phase when a stage's bytes are there, empty[s] when every
// consuming warp is done with them. The ring runs on over tiles, so the next tile's operands arrive
// while the result of this one is written.
//
// A tile of fewer than 64 rows still runs 64-row instructions: they read what lies behind its rows
// in shared memory, and those rows of the result are dropped.
//
// FP8: tensor cores keep about 14 bits of a sum, so after every 128 of k (one stage, one block of
// scales) the sums are scaled and added to totals in fp32.
#pragma once

#include <cstdint>

#include "Kernels/gemm/barrier.cuh"
#include "Kernels/gemm/tiles.cuh"
#include "Kernels/gemm/wgmma.cuh"

namespace gemm {

struct HopperOperands {
    CUtensorMap a;  // {k, rows, groups of a masked layout or 1}
    CUtensorMap b;  // {k, n, groups}
};

template <class T, int kRowsValue, int kColumnsValue, int kStagesValue, int kBlocksValue>
struct HopperTraits {
    using Element = T;
    using Out = OutOf<T>;
    static constexpr int kRows = kRowsValue;
    static constexpr int kColumns = kColumnsValue;
    static constexpr int kStages = kStagesValue;
    static constexpr int kBlocks = kBlocksValue;  // on one multiprocessor
    static constexpr int kConsumers = kRows > 64 ? 2 : 1;
    static constexpr int kThreads = 128 * (1 + kConsumers);
    static constexpr int kStageBytes = 128;  // of k, a row
    static constexpr int kDepth = kStageBytes / sizeof(T);
    // Columns that a warp turns into whole lines at a time.
    static constexpr int kChunk = kColumns < 64 ? kColumns : 64;

    static_assert(kRows <= 64 || kRows == 128, "a consumer has 64 rows");
    static_assert(kBlocks == 1 || kConsumers == 1, "registers are shared out for these");
    static_assert(!kScaled<T> || kScaleBlock % kColumns == 0, "a tile has one scale of b");

    struct SharedStorage {
        alignas(1024) std::uint8_t a[kStages][kRows * kStageBytes];
        alignas(1024) std::uint8_t b[kStages][kColumns * kStageBytes];
        // FP8: the scales of the tile's rows for a stage's 128 of k.
        alignas(128) float a_scales[kStages][kScaled<T> ? kRows : 4];
        // 16 rows of a chunk for each consuming warp.
        alignas(128) std::uint8_t out[kConsumers * 4][16 * kChunk * 2];
        std::uint64_t full[kStages];
        std::uint64_t empty[kStages];
        TileList list;
    };
    // The rows that instructions read behind a short tile must exist.
    static_assert(kRows >= 64 || kColumns * kStageBytes * kStages >= 64 * kStageBytes,
                  "operands of a short tile reach beyond the stages");
    // The storage is aligned by hand.
    static constexpr int kSharedBytes = sizeof(SharedStorage) + 1024;
    static_assert(kSharedBytes <= 227 * 1024, "too much shared memory");
};

// Place in the ring: which stage, and the parity of its current phase.
template <int kStages>
struct Ring {
    int stage = 0;
    unsigned parity = 0;

    __device__ void advance() {
        if (++stage == kStages) {
            stage = 0;
            parity ^= 1;
        }
    }
};

template <class Traits>
__device__ void produce(const Gemm& p, const HopperOperands& operands,
                        typename Traits::SharedStorage& shared) {
    using T = typename Traits::Element;
    const int tiles = tile_count<Traits::kRows, Traits::kColumns>(p, shared.list);
    const int steps = (p.shape.k + Traits::kDepth - 1) / Traits::kDepth;
    const bool masked = p.shape.layout == Layout::kMasked;
    Ring<Traits::kStages> ring;
    for (int number = blockIdx.x; number < tiles; number += gridDim.x) {
        const Tile tile = tile_at<Traits::kRows, Traits::kColumns>(p, shared.list, number);
        const int row = static_cast<int>(tile.in_group);
        // Lines of scales end with whole pieces of 16 bytes, wherever the rows end.
        const std::int64_t line = a_scale_line(p.shape);
        const int scale_bytes =
            kScaled<T> ? min(Traits::kRows, static_cast<int>(line) - row) * int{sizeof(float)} : 0;
        const float* a_scales = kScaled<T> ? a_scales_of(p, tile) : nullptr;
        for (int step = 0; step < steps; ++step) {
            std::uint64_t& full = shared.full[ring.stage];
            // The first round finds all stages empty: the phase before the first counts as over.
            barrier_wait(shared.empty[ring.stage], ring.parity ^ 1);
            barrier_expect(full,
                           (Traits::kRows + Traits::kColumns) * Traits::kStageBytes + scale_bytes);
            if constexpr (kScaled<T>) {
                copy_line(shared.a_scales[ring.stage], a_scales, scale_bytes, full);
                a_scales += line;
            }
            copy_box(shared.a[ring.stage], operands.a, full, step * Traits::kDepth, row,
                     masked ? tile.group : 0);
            copy_box(shared.b[ring.stage], operands.b, full, step * Traits::kDepth, tile.column,
                     tile.group);
            ring.advance();
        }
    }
}

template <class Traits>
using HopperSums = float[Traits::kColumns / 2];

template <class Traits>
__device__ __forceinline__ void multiply_stage(typename Traits::SharedStorage& shared, int stage,
                                               int first_row, HopperSums<Traits>& sums, bool add) {
    const std::uint64_t a = operand_descriptor(shared.a[stage] + first_row * Traits::kStageBytes);
    const std::uint64_t b = operand_descriptor(shared.b[stage]);
#pragma unroll
    for (int i = 0; i < Traits::kStageBytes / 32; ++i) {
        wgmma<typename Traits::Element, Traits::kColumns>(sums, a + 2 * i, b + 2 * i, add || i > 0);
    }
    wgmma_commit();
}

// One lane a warp says that the warp has read a stage.
__device__ __forceinline__ void release(std::uint64_t& empty) {
    if (threadIdx.x % 32 == 0) barrier_arrive(empty);
}

// 16-bit operands: one group of products stays under way while the next is issued.
template <class Traits>
__device__ __forceinline__ void sum_tile(typename Traits::SharedStorage& shared, int steps,
                                         int first_row, Ring<Traits::kStages>& ring,
                                         HopperSums<Traits>& sums) {
    int previous = 0;
    for (int step = 0; step < steps; ++step) {
        barrier_wait(shared.full[ring.stage], ring.parity);
        pin(sums);
        wgmma_fence();
        multiply_stage<Traits>(shared, ring.stage, first_row, sums, step > 0);
        pin(sums);
        wgmma_wait<1>();
        if (step > 0) release(shared.empty[previous]);
        previous = ring.stage;
        ring.advance();
    }
    wgmma_wait<0>();
    pin(sums);
    release(shared.empty[previous]);
}

// FP8: the sums of a stage are scaled and added before the next stage's begin; the other consumer
// keeps the tensor cores busy meanwhile.
template <class Traits>
__device__ __forceinline__ void sum_scaled_tile(const Gemm& p, const Tile& tile,
                                                typename Traits::SharedStorage& shared, int steps,
                                                int first_row, Ring<Traits::kStages>& ring,
                                                HopperSums<Traits>& totals) {
    // Rows of this thread; those of a short tile's missing half are dropped later.
    const int lane_row = first_row + threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4;
    const int row = min(lane_row, Traits::kRows - 1), row8 = min(lane_row + 8, Traits::kRows - 1);
    // Scales of b are loaded a warp's worth of steps at once, and one such load ahead.
    const float* b_scales = b_scales_of(p, tile);
    const int lane = threadIdx.x % 32;
    const auto load_b_scale = [&](int step) {
        return step + lane < steps ? __ldg(b_scales + step + lane) : 0.0f;
    };
    float b_scale = 0.0f, next_b_scale = load_b_scale(0);
    HopperSums<Traits> sums;
    for (int step = 0; step < steps; ++step) {
        if (step % 32 == 0) {
            b_scale = next_b_scale;
            next_b_scale = load_b_scale(step + 32);
        }
        const float scale_of_b = __shfl_sync(~0u, b_scale, step % 32);
        barrier_wait(shared.full[ring.stage], ring.parity);
        pin(sums);
        wgmma_fence();
        multiply_stage<Traits>(shared, ring.stage, first_row, sums, false);
        const float scale = shared.a_scales[ring.stage][row] * scale_of_b;
        const float scale8 = shared.a_scales[ring.stage][row8] * scale_of_b;
        wgmma_wait<0>();
        pin(sums);
        release(shared.empty[ring.stage]);
        ring.advance();
#pragma unroll
        for (int i = 0; i < Traits::kColumns / 2; i += 4) {
            totals[i] += scale * sums[i];
            totals[i + 1] += scale * sums[i + 1];
            totals[i + 2] += scale8 * sums[i + 2];
            totals[i + 3] += scale8 * sums[i + 3];
        }
    }
}

__device__ __forceinline__ void store_matrices(void* row, unsigned a, unsigned b, unsigned c,
                                               unsigned d) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
                     shared_address(row)),
                 "r"(a), "r"(b), "r"(c), "r"(d)
                 : "memory");
}

// Each warp writes its 16 rows, a chunk of columns at a time: through shared memory, so that whole
// lines leave. Pieces of 16 bytes are permuted there as in the operands' swizzle.
template <class Traits>
__device__ void store_tile(const Gemm& p, const Tile& tile, typename Traits::SharedStorage& shared,
                           int first_row, const HopperSums<Traits>& sums) {
    using Out = typename Traits::Out;
    constexpr int kLineBytes = Traits::kChunk * 2;
    constexpr int kPieces = kLineBytes / 16;
    const int lane = threadIdx.x % 32;
    const int warp_row = first_row + threadIdx.x % 128 / 32 * 16;
    std::uint8_t* lines = shared.out[threadIdx.x / 32 - 4];
    const auto place = [&](int row, int piece) {
        return lines + row * kLineBytes + ((piece ^ row) % kPieces) * 16;
    };
    Out* out = static_cast<Out*>(p.out);
    if (warp_row >= Traits::kRows) return;  // all of a short tile's rows belong to warps before
#pragma unroll
    for (int chunk = 0; chunk < Traits::kColumns / Traits::kChunk; ++chunk) {
#pragma unroll
        for (int pair = 0; pair < kPieces / 2; ++pair) {
            const float* d = &sums[chunk * Traits::kChunk / 2 + pair * 8];
            store_matrices(place(lane % 16, pair * 2 + lane / 16), narrow_pair<Out>(d[0], d[1]),
                           narrow_pair<Out>(d[2], d[3]), narrow_pair<Out>(d[4], d[5]),
                           narrow_pair<Out>(d[6], d[7]));
        }
        __syncwarp();  // the warp's lines are complete
#pragma unroll
        for (int i = 0; i < 16 * kPieces / 32; ++i) {
            const int row = i * (32 / kPieces) + lane / kPieces, piece = lane % kPieces;
            const int column = tile.column + chunk * Traits::kChunk + piece * 8;
            const std::int64_t at = tile.row + warp_row + row;
            if (at < tile.limit && column < p.shape.n) {
                *reinterpret_cast<uint4*>(out + at * p.shape.n + column) =
                    *reinterpret_cast<const uint4*>(place(row, piece));
            }
        }
        __syncwarp();  // they have been read before the next chunk overwrites them
    }
}

template <class Traits>
__device__ void consume(const Gemm& p, typename Traits::SharedStorage& shared) {
    const int tiles = tile_count<Traits::kRows, Traits::kColumns>(p, shared.list);
    const int steps = (p.shape.k + Traits::kDepth - 1) / Traits::kDepth;
    const int first_row = (threadIdx.x / 128 - 1) * 64;
    Ring<Traits::kStages> ring;
    for (int number = blockIdx.x; number < tiles; number += gridDim.x) {
        const Tile tile = tile_at<Traits::kRows, Traits::kColumns>(p, shared.list, number);
        HopperSums<Traits> sums = {};
        if constexpr (kScaled<typename Traits::Element>) {
            sum_scaled_tile<Traits>(p, tile, shared, steps, first_row, ring, sums);
        } else {
            sum_tile<Traits>(shared, steps, first_row, ring, sums);
        }
        store_tile<Traits>(p, tile, shared, first_row, sums);
    }
}

template <class Traits>
__global__ void __launch_bounds__(Traits::kThreads, Traits::kBlocks)
    hopper_kernel(const __grid_constant__ Gemm p, const __grid_constant__ HopperOperands operands) {
    extern __shared__ std::uint8_t shared_bytes[];
    const std::uintptr_t start = reinterpret_cast<std::uintptr_t>(shared_bytes);
    auto& shared = *reinterpret_cast<typename Traits::SharedStorage*>((start + 1023) / 1024 * 1024);
    if (threadIdx.x / 32 == 0) make_list<Traits::kRows>(p, shared.list);
    if (threadIdx.x == 128) {
        for (int stage = 0; stage < Traits::kStages; ++stage) {
            barrier_init(shared.full[stage], 1);
            barrier_init(shared.empty[stage], Traits::kConsumers * 4);
        }
        barrier_init_fence();
    }
    __syncthreads();  // barriers and the list are there for all
    // Registers that the producer does not need go to the consumers.
    constexpr int kConsumerRegisters = Traits::kConsumers == 2 ? 232 : 208;
    if (threadIdx.x < 128) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x == 0) produce<Traits>(p, operands, shared);
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kConsumerRegisters));
        consume<Traits>(p, shared);
    }
}

}  // namespace gemm
