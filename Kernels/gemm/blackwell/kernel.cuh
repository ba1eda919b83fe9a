// Blackwell's product: tcgen05 fed by TMA, sums in tensor memory, one block or a pair of them per
// tile.
//
// Blocks walk over the tiles of the result. One thread copies: it fills a ring of stages, each with
// 64 of k of the block's 128 rows of a and its columns of b. One thread, in a pair that of the even
// block, multiplies: the sums of a tile go to one half of tensor memory while four warps round and
// store those of the tile before from the other half.
//
// FP8: the sums of every 128 of k (one stage, one block of scales) go to a buffer of their own, and
// the storing warps scale and add them to totals in registers.
//
// MXFP8, NVFP4 and MXFP4: a stage has the operands' scales too. The multiplying thread copies them
// to tensor memory, in a pair to that of both blocks, and the tensor cores apply them. Of FP8 with
// UE8M0 scales a stage has one scale per row, and every fourth stage brings those of four.
//
// Who waits for whom, in a pair across its blocks:
//   full[stage]     bytes arrive           -> products
//   empty[stage]    products have read     -> copies
//   summed[buffer]  products are complete  -> storing warps
//   stored[buffer]  storing warps have read -> products
#pragma once

#include <cstdint>

#include "Kernels/device/ptx/cluster.cuh"
#include "Kernels/device/ptx/mbarrier.cuh"
#include "Kernels/device/ptx/pair.cuh"
#include "Kernels/device/ptx/registers.cuh"
#include "Kernels/device/ptx/tcgen05.cuh"
#include "Kernels/device/ptx/tma.cuh"
#include "Kernels/gemm/blackwell/epilogue.cuh"
#include "Kernels/gemm/blackwell/traits.cuh"

namespace gemm::blackwell {

// Tiles of scales that a step has; the last step of FP4 may be half a stage.
template <class Traits>
__device__ __forceinline__ int scale_tiles_of(const Gemm& p, int step) {
    if constexpr (Traits::kScaleSteps > 1) return 1;
    constexpr int kTileDepth = kScaleGroup<typename Traits::Element> * device::kScaleTileColumns;
    return min(Traits::kScaleTiles, p.shape.k / kTileDepth - step * Traits::kScaleTiles);
}

// Tiles of scales that rows of a matrix have.
__device__ __forceinline__ int scale_tiles_down(int rows) {
    return (rows + device::kScaleTileRows - 1) / device::kScaleTileRows;
}

template <class Traits>
__device__ void copy(const Gemm& p, const Operands& operands, int rank,
                     typename Traits::SharedStorage& shared) {
    const int steps = steps_of<Traits>(p);
    const bool masked = p.shape.layout == Layout::kMasked;
    Ring<Traits::kStages> ring;
    for_each_tile<Traits>(p, shared.list, operands.walk, [&](const Tile& tile) {
        const int row = static_cast<int>(tile.in_group) + rank * Traits::kBlockRows;
        const int column = tile.column + rank * Traits::kBlockColumns;
        const int group = masked ? tile.group : 0;
        for (int step = 0; step < steps; ++step) {
            const int stage = ring.stage;
            // At first all stages are empty: the phase before the first counts as complete.
            wait<Traits>(&shared.empty[stage], ring.parity ^ 1);
            const bool has_scales = step % Traits::kScaleSteps == 0;
            if (rank == 0) {
                ptx::mbarrier_expect_bytes(
                    &shared.full[stage],
                    Traits::kBlocks * (has_scales ? Traits::kStageBytes : Traits::kOperandBytes));
            }
            const auto load = [&](void* to, const CUtensorMap& map, int x, int y, int z) {
                if constexpr (Traits::kBlocks == 1) {
                    ptx::load_box(to, map, &shared.full[stage], x, y, z);
                } else {
                    const std::uint32_t full = ptx::peer_address(&shared.full[stage], 0);
                    ptx::load_box_of_pair(to, map, full, x, y, z);
                }
            };
            const int k = step * Traits::kDepth / kPacking<typename Traits::Element>;
            load(shared.a[stage], operands.a, k, row, group);
            load(shared.b[stage], operands.b, k, column, tile.group);
            if constexpr (kBlockScaled<typename Traits::Element>) {
                if (has_scales) {
                    // A block's rows of a, and all columns of the tile.
                    const int first = step / Traits::kScaleSteps * Traits::kScaleTiles;
                    load(shared.a_scales[stage], operands.a_scales, 0, first,
                         group * scale_tiles_down(p.shape.rows) + row / device::kScaleTileRows);
                    load(shared.b_scales[stage], operands.b_scales, 0, first,
                         tile.group * scale_tiles_down(p.shape.n) +
                             tile.column / device::kScaleTileRows);
                }
            }
            ring.advance();
        }
    });
}

template <class T>
constexpr ptx::ScaledKind kScaledKind = !kPaired<T>        ? ptx::ScaledKind::kMxf8
                                        : kTensorScaled<T> ? ptx::ScaledKind::kNvf4
                                                           : ptx::ScaledKind::kMxf4;

// The slots of tensor memory that steps' scales go to, in turn. Where there are as many as stages,
// a slot is free when the stage of its last step is; where there are fewer, when the products of
// the step that had it are done.
template <class Traits>
struct ScaleSlots {
    Ring<Traits::kScaleSlots> slot;
    Ring<Traits::kStages> before;
    int taken = 0;

    // The first column of the next.
    __device__ std::uint32_t take(typename Traits::SharedStorage& shared) {
        if constexpr (Traits::kScaleSlots < Traits::kStages) {
            if (taken == Traits::kScaleSlots) {
                wait<Traits>(&shared.empty[before.stage], before.parity);
                ptx::tensor_fence_after_sync();
                before.advance();
            } else {
                ++taken;
            }
        }
        const std::uint32_t column = Traits::kSumColumns + slot.stage * Traits::kSlotColumns;
        slot.advance();
        return column;
    }
};

// Copies a stage's scales, if it has any, to a slot of tensor memory, in a pair to that of both
// blocks, and multiplies; the tensor cores apply the scales.
template <class Traits>
__device__ __forceinline__ void multiply_scaled(const Gemm& p, const Tile& tile, int step,
                                                int stage, std::uint32_t slot, std::uint32_t sums,
                                                std::uint64_t a, std::uint64_t b, bool is_first,
                                                typename Traits::SharedStorage& shared) {
    constexpr ptx::ScaledKind kKind = kScaledKind<typename Traits::Element>;
    constexpr std::uint32_t kProduct =
        ptx::tensor_scaled_product<kKind>(Traits::kRows, Traits::kColumns);
    constexpr int kTileRows = device::kScaleTileBytes / 16;
    constexpr int kDown = Traits::kScaleTilesDown;
    const int tiles = scale_tiles_of<Traits>(p, step);
    const std::uint32_t b_slot = slot + Traits::kScaleTiles * 4;
    const std::uint64_t a_tiles =
        ptx::tensor_scale_tile(ptx::shared_address(shared.a_scales[stage]));
    const std::uint64_t b_tiles =
        ptx::tensor_scale_tile(ptx::shared_address(shared.b_scales[stage]));
    const bool has_scales = step % Traits::kScaleSteps == 0;
    for (int at = 0; has_scales && at < tiles; ++at) {
        ptx::tensor_copy_scales<Traits::kBlocks>(slot + 4 * at, a_tiles + kTileRows * at);
#pragma unroll
        for (int down = 0; down < kDown; ++down) {
            ptx::tensor_copy_scales<Traits::kBlocks>(
                b_slot + 4 * (kDown * at + down),
                b_tiles + kTileRows * (down * Traits::kScaleTiles + at));
        }
    }
    // The first columns of a tile of scales may belong to the tile before; 32 are a column of it.
    const std::uint32_t b_scales = b_slot + tile.column % device::kScaleTileRows / 32;
#pragma unroll
    for (int part = 0; part < 4; ++part) {
        // Its scales: a tile, and from which byte of each word on.
        constexpr int kScales = Traits::kProductScales;
        const int at = part * kScales / device::kScaleTileColumns;
        const int byte =
            kScales > 0 ? part * kScales % device::kScaleTileColumns : step % Traits::kScaleSteps;
        if (at >= tiles) break;
        ptx::tensor_multiply_scaled<kKind, Traits::kBlocks>(
            sums, a + 2 * part, b + 2 * part, kProduct | ptx::tensor_scale_byte(byte),
            slot + 4 * at, b_scales + 4 * kDown * at, !is_first || part > 0);
    }
}

template <class Traits>
__device__ void multiply(const Gemm& p, const Operands& operands, std::uint32_t tensor_memory,
                         typename Traits::SharedStorage& shared) {
    const int steps = steps_of<Traits>(p);
    const std::uint64_t a = ptx::tensor_operand(ptx::shared_address(shared.a[0]));
    const std::uint64_t b = ptx::tensor_operand(ptx::shared_address(shared.b[0]));
    Ring<Traits::kStages> ring;
    Ring<Traits::kBuffers> buffers;
    ScaleSlots<Traits> slots;
    std::uint32_t slot = 0;  // with the scales of this step
    for_each_tile<Traits>(p, shared.list, operands.walk, [&](const Tile& tile) {
        for (int step = 0; step < steps; ++step) {
            const bool is_first = kScaled<typename Traits::Element> || step == 0;
            const bool is_last = kScaled<typename Traits::Element> || step + 1 == steps;
            const std::uint32_t sums = tensor_memory + buffers.stage * Traits::kColumns;
            if (is_first) wait<Traits>(&shared.stored[buffers.stage], buffers.parity ^ 1);
            wait<Traits>(&shared.full[ring.stage], ring.parity);
            ptx::tensor_fence_after_sync();
            const std::uint64_t stage_a = a + ring.stage * (sizeof(shared.a[0]) / 16);
            const std::uint64_t stage_b = b + ring.stage * (sizeof(shared.b[0]) / 16);
            if constexpr (kBlockScaled<typename Traits::Element>) {
                if (step % Traits::kScaleSteps == 0) slot = tensor_memory + slots.take(shared);
                multiply_scaled<Traits>(p, tile, step, ring.stage, slot, sums, stage_a, stage_b,
                                        is_first, shared);
            } else {
                constexpr std::uint32_t kProduct =
                    ptx::tensor_product<typename Traits::Element>(Traits::kRows, Traits::kColumns);
#pragma unroll
                for (int part = 0; part < 4; ++part) {
                    ptx::tensor_multiply<typename Traits::Element, Traits::kBlocks>(
                        sums, stage_a + 2 * part, stage_b + 2 * part, kProduct,
                        !is_first || part > 0);
                }
            }
            ptx::tensor_commit<Traits::kBlocks>(&shared.empty[ring.stage]);
            ring.advance();
            if (is_last) {
                ptx::tensor_commit<Traits::kBlocks>(&shared.summed[buffers.stage]);
                buffers.advance();
            }
        }
    });
}

// All threads of a tile's blocks.
template <class Traits>
__device__ __forceinline__ void synchronize() {
    ptx::tensor_fence_before_sync();
    if constexpr (Traits::kBlocks == 1) {
        __syncthreads();
    } else {
        ptx::cluster_arrive();
        ptx::cluster_wait();
    }
    ptx::tensor_fence_after_sync();
}

template <class Traits>
__global__ void __launch_bounds__(Traits::kThreads, 1)
    gemm_kernel(const __grid_constant__ Gemm p, const __grid_constant__ Operands operands) {
    extern __shared__ std::uint8_t shared_bytes[];
    const unsigned start = -ptx::shared_address(shared_bytes) % 1024;
    auto& shared = *reinterpret_cast<typename Traits::SharedStorage*>(shared_bytes + start);
    const int warp = __shfl_sync(~0u, threadIdx.x / 32, 0);
    const bool first_lane = threadIdx.x % 32 == 0;
    const int rank = Traits::kBlocks == 1 ? 0 : static_cast<int>(ptx::cluster_rank());
    if (warp == 0) make_list<Traits::kRows>(p, p.shape.layout, shared.list);
    if (warp == 1 && first_lane) {
        for (int stage = 0; stage < Traits::kStages; ++stage) {
            ptx::mbarrier_init(&shared.full[stage], 1);
            ptx::mbarrier_init(&shared.empty[stage], 1);
        }
        for (int buffer = 0; buffer < Traits::kBuffers; ++buffer) {
            ptx::mbarrier_init(&shared.summed[buffer], 1);
            ptx::mbarrier_init(&shared.stored[buffer],
                               4 * Traits::kStoringGroups * Traits::kBlocks);
        }
        ptx::fence_mbarrier_init();
    }
    if (warp == 2) {
        ptx::tensor_memory_allocate<Traits::kBlocks>(&shared.tensor_memory, Traits::kTensorColumns);
        ptx::tensor_memory_relinquish<Traits::kBlocks>();
    }
    synchronize<Traits>();  // barriers, the list and the address are visible to all
    const std::uint32_t tensor_memory = shared.tensor_memory;
    if (warp == 0) {
        if (first_lane) {
            ptx::prefetch_map(operands.a);
            ptx::prefetch_map(operands.b);
            copy<Traits>(p, operands, rank, shared);
        }
        __syncwarp();
    } else if (warp == 1) {
        if (first_lane && rank == 0) multiply<Traits>(p, operands, tensor_memory, shared);
        __syncwarp();
    } else if (warp >= 4) {
        store<Traits>(p, operands, rank, tensor_memory, shared);
        __syncwarp();
    }
    synchronize<Traits>();  // nobody uses tensor memory or the other block's barriers any more
    if (warp == 2) ptx::tensor_memory_free<Traits::kBlocks>(tensor_memory, Traits::kTensorColumns);
}

}  // namespace gemm::blackwell
