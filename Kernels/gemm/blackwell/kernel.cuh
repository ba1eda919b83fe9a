// Blackwell's product: tcgen05 fed by TMA, sums in tensor memory, one block or a pair of them per
// tile.
//
// Blocks walk over the tiles of the result. One thread copies: it fills a ring of stages, each with
// 64 of k of the block's 128 rows of a and its columns of b. One thread, in a pair that of the even
// block, multiplies: the sums of a tile go to one half of tensor memory while four warps round and
// store those of the tile before from the other half.
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
#include "Kernels/gemm/blackwell/traits.cuh"

namespace gemm::blackwell {

namespace ptx = device::ptx;

// Calls `body` for each of this block's tiles.
template <class Traits, class Body>
__device__ __forceinline__ void for_each_tile(const Gemm& p, const TileList& list, Body body) {
    const int tiles = tile_count<Traits::kRows, Traits::kColumns>(p, list);
    const int stride = gridDim.x / Traits::kBlocks;
    for (int number = blockIdx.x / Traits::kBlocks; number < tiles; number += stride) {
        body(tile_at<Traits::kRows, Traits::kColumns>(p, list, number));
    }
}

template <class Traits>
__device__ __forceinline__ int steps_of(const Gemm& p) {
    return (p.shape.k + Traits::kDepth - 1) / Traits::kDepth;
}

// Waits for arrivals that may come from the other block of a pair.
template <class Traits>
__device__ __forceinline__ void wait(std::uint64_t* barrier, unsigned parity) {
    if constexpr (Traits::kBlocks == 1) {
        ptx::mbarrier_wait(barrier, parity);
    } else {
        while (!ptx::mbarrier_try_wait_cluster(barrier, parity)) {
        }
    }
}

template <class Traits>
__device__ void copy(const Gemm& p, const Operands& operands, int rank,
                     typename Traits::SharedStorage& shared) {
    const int steps = steps_of<Traits>(p);
    const bool masked = p.shape.layout == Layout::kMasked;
    Ring<Traits::kStages> ring;
    for_each_tile<Traits>(p, shared.list, [&](const Tile& tile) {
        const int row = static_cast<int>(tile.in_group) + rank * Traits::kBlockRows;
        const int column = tile.column + rank * Traits::kBlockColumns;
        for (int step = 0; step < steps; ++step) {
            const int stage = ring.stage;
            // At first all stages are empty: the phase before the first counts as complete.
            wait<Traits>(&shared.empty[stage], ring.parity ^ 1);
            if (rank == 0) {
                ptx::mbarrier_expect_bytes(&shared.full[stage],
                                           Traits::kBlocks * Traits::kStageBytes);
            }
            const int k = step * Traits::kDepth, group = masked ? tile.group : 0;
            if constexpr (Traits::kBlocks == 1) {
                ptx::load_box(shared.a[stage], operands.a, &shared.full[stage], k, row, group);
                ptx::load_box(shared.b[stage], operands.b, &shared.full[stage], k, column,
                              tile.group);
            } else {
                const std::uint32_t full = ptx::peer_address(&shared.full[stage], 0);
                ptx::load_box_of_pair(shared.a[stage], operands.a, full, k, row, group);
                ptx::load_box_of_pair(shared.b[stage], operands.b, full, k, column, tile.group);
            }
            ring.advance();
        }
    });
}

template <class Traits>
__device__ void multiply(const Gemm& p, std::uint32_t tensor_memory,
                         typename Traits::SharedStorage& shared) {
    constexpr std::uint32_t kProduct =
        ptx::tensor_product<typename Traits::Element>(Traits::kRows, Traits::kColumns);
    const int steps = steps_of<Traits>(p);
    const std::uint64_t a = ptx::tensor_operand(ptx::shared_address(shared.a[0]));
    const std::uint64_t b = ptx::tensor_operand(ptx::shared_address(shared.b[0]));
    Ring<Traits::kStages> ring;
    Ring<Traits::kBuffers> buffers;
    for_each_tile<Traits>(p, shared.list, [&](const Tile&) {
        const std::uint32_t sums = tensor_memory + buffers.stage * Traits::kColumns;
        wait<Traits>(&shared.stored[buffers.stage], buffers.parity ^ 1);
        ptx::tensor_fence_after_sync();
        for (int step = 0; step < steps; ++step) {
            wait<Traits>(&shared.full[ring.stage], ring.parity);
            ptx::tensor_fence_after_sync();
            const std::uint64_t stage_a = a + ring.stage * (sizeof(shared.a[0]) / 16);
            const std::uint64_t stage_b = b + ring.stage * (sizeof(shared.b[0]) / 16);
#pragma unroll
            for (int part = 0; part < Traits::kDepth / 16; ++part) {
                ptx::tensor_multiply<typename Traits::Element, Traits::kBlocks>(
                    sums, stage_a + 2 * part, stage_b + 2 * part, kProduct, step > 0 || part > 0);
            }
            ptx::tensor_commit<Traits::kBlocks>(&shared.empty[ring.stage]);
            ring.advance();
        }
        ptx::tensor_commit<Traits::kBlocks>(&shared.summed[buffers.stage]);
        buffers.advance();
    });
}

// 64 columns of the thread's row, rounded, as eight 16-byte pieces.
template <class Traits>
__device__ __forceinline__ void load_line(std::uint32_t address, uint4 (&line)[8]) {
    std::uint32_t words[2][32];
    ptx::tensor_load(words[0], address);
    ptx::tensor_load(words[1], address + 32);
    ptx::tensor_wait_for_loads();
    ptx::pin(words[0]);
    ptx::pin(words[1]);
    const auto pair = [&](int column) {
        const std::uint32_t* at = &words[column / 32][column % 32];
        return narrow_pair<typename Traits::Out>(__uint_as_float(at[0]), __uint_as_float(at[1]));
    };
#pragma unroll
    for (int piece = 0; piece < 8; ++piece) {
        const int column = piece * 8;
        line[piece] = {pair(column), pair(column + 2), pair(column + 4), pair(column + 6)};
    }
}

// The warp's 32 rows of 64 columns by TMA, through shared memory under the 128-byte swizzle.
__device__ __forceinline__ void store_box(const Operands& operands, std::uint8_t* staged,
                                          int column, int row, const uint4 (&line)[8]) {
    const int lane = threadIdx.x % 32;
    if (lane == 0) ptx::wait_for_boxes_read();  // the one before has been read
    __syncwarp();
#pragma unroll
    for (int piece = 0; piece < 8; ++piece) {
        *reinterpret_cast<uint4*>(staged + lane * 128 + (piece ^ lane % 8) * 16) = line[piece];
    }
    ptx::fence_async_proxy();
    __syncwarp();  // the warp's lines are complete
    if (lane != 0) return;
    ptx::store_box(operands.out, staged, column, row);
    ptx::commit_boxes();
}

template <class Traits>
__device__ void store(const Gemm& p, const Operands& operands, int rank,
                      std::uint32_t tensor_memory, typename Traits::SharedStorage& shared) {
    using Out = typename Traits::Out;
    const int warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
    const int first_row = rank * Traits::kBlockRows + warp * 32;
    const std::uint32_t lanes = tensor_memory + (static_cast<std::uint32_t>(warp) * 32 << 16);
    Ring<Traits::kBuffers> buffers;
    for_each_tile<Traits>(p, shared.list, [&](const Tile& tile) {
        const std::int64_t row = tile.row + first_row;
        wait<Traits>(&shared.summed[buffers.stage], buffers.parity);
        ptx::tensor_fence_after_sync();
        for (int chunk = 0; chunk < Traits::kColumns / 64; ++chunk) {
            const int column = tile.column + chunk * 64;
            uint4 line[8];
            load_line<Traits>(lanes + buffers.stage * Traits::kColumns + chunk * 64, line);
            if (chunk + 1 == Traits::kColumns / 64) {
                // All of the warp's sums are in registers.
                ptx::tensor_fence_before_sync();
                __syncwarp();
                std::uint64_t* stored = &shared.stored[buffers.stage];
                if (lane != 0) {
                } else if constexpr (Traits::kBlocks == 1) {
                    ptx::mbarrier_arrive(stored);
                } else {
                    ptx::mbarrier_arrive_at(ptx::peer_address(stored, 0));
                }
            }
            if (column >= p.shape.n) continue;
            if (operands.stores_boxes) {
                store_box(operands, shared.out[warp], column, static_cast<int>(row), line);
            } else if (row + lane < tile.limit) {
                Out* out = static_cast<Out*>(p.out) + (row + lane) * p.shape.n + column;
#pragma unroll
                for (int piece = 0; piece < 8; ++piece) {
                    if (column + piece * 8 < p.shape.n) {
                        reinterpret_cast<uint4*>(out)[piece] = line[piece];
                    }
                }
            }
        }
        buffers.advance();
    });
    if (lane == 0) ptx::wait_for_boxes_read();
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
    if (warp == 0) make_list<Traits::kRows>(p, shared.list);
    if (warp == 1 && first_lane) {
        for (int stage = 0; stage < Traits::kStages; ++stage) {
            ptx::mbarrier_init(&shared.full[stage], 1);
            ptx::mbarrier_init(&shared.empty[stage], 1);
        }
        for (int buffer = 0; buffer < Traits::kBuffers; ++buffer) {
            ptx::mbarrier_init(&shared.summed[buffer], 1);
            ptx::mbarrier_init(&shared.stored[buffer], 4 * Traits::kBlocks);
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
        if (first_lane && rank == 0) multiply<Traits>(p, tensor_memory, shared);
        __syncwarp();
    } else if (warp >= 4) {
        store<Traits>(p, operands, rank, tensor_memory, shared);
        __syncwarp();
    }
    synchronize<Traits>();  // nobody uses tensor memory or the other block's barriers any more
    if (warp == 2) ptx::tensor_memory_free<Traits::kBlocks>(tensor_memory, Traits::kTensorColumns);
}

}  // namespace gemm::blackwell
