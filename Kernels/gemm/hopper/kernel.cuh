// Hopper's product: wgmma fed by TMA, one producer warpgroup and up to three consumers.
//
// A block walks over kRows x kColumns tiles of the result. Warpgroup 0 produces: one thread fills a
// ring of stages, each with 128 bytes of k of the tile's rows of a and b. For large tiles of FP8
// its second warp adds the scales of b, too few bytes for TMA. The other warpgroups consume: 64
// rows each, or all rows of every other tile. full[s] completes a phase when a stage's bytes have
// arrived, empty[s] when every warp that reads them is done. The ring continues across tiles, so
// the next tile's operands arrive during this one's epilogue.
//
// A tile of fewer than 64 rows still runs 64-row instructions: they read whatever follows its rows
// in shared memory, and those rows of the result are dropped.
//
// Few rows are better as columns: the instructions have 64 rows, but any multiple of eight columns.
// Then the host swaps a and b, and the kernel stores the tiles of that product transposed.
//
// Two blocks of a cluster may load one operand together: each a half of it, to both. Then empty[s]
// counts the readers of both blocks, and the ring's stages pass in step.
//
// FP8: tensor cores keep about 14 bits of a sum, so after every 128 of k (one stage, one block of
// scales) the sums are scaled and promoted to totals in fp32.
#pragma once

#include <cstdint>

#include "Kernels/device/ptx/mbarrier.cuh"
#include "Kernels/device/ptx/registers.cuh"
#include "Kernels/device/ptx/tma.cuh"
#include "Kernels/gemm/hopper/epilogue.cuh"
#include "Kernels/gemm/hopper/sums.cuh"
#include "Kernels/gemm/hopper/traits.cuh"

namespace gemm::hopper {

// The steps of k that this block sums.
template <class Traits>
__device__ Part steps_of(const Gemm& p, const Operands& operands) {
    const int steps = (p.shape.k + Traits::kDepth - 1) / Traits::kDepth;
    const auto split = split_of<Traits>(operands);
    return split.part_of(steps, split.rank());
}

// Loads an operand's rows of a stage, or a half of them to both blocks of a pair.
template <bool kShared, int kBox>
__device__ __forceinline__ void load_rows(std::uint8_t* stage, const CUtensorMap& map,
                                          std::uint64_t* full, int k, int row, int group) {
    if constexpr (kShared) {
        constexpr std::uint16_t kBoth = 0b11;
        const int first = Pair().rank() * kBox;
        ptx::load_box_to(kBoth, stage + first * 128, map, full, k, row + first, group);
    } else {
        ptx::load_box(stage, map, full, k, row, group);
    }
}

template <class Traits>
__device__ void produce(const Gemm& p, const Operands& operands,
                        typename Traits::SharedStorage& shared) {
    using T = typename Traits::Element;
    const int tiles = tile_count(shared.list, operands.walk);
    const Part steps = steps_of<Traits>(p, operands);
    constexpr bool kMasked = Traits::kLayout == Layout::kMasked;
    const auto split = split_of<Traits>(operands);
    Ring<Traits::kStages> ring;
    for (int number = split.cluster(); number < tiles; number += split.clusters()) {
        const Tile tile = find_tile<Traits>(p, operands, shared, number);
        const int row = static_cast<int>(tile.in_group);
        // Lines of scales end in whole 16-byte pieces, wherever the rows end.
        const std::int64_t line = a_scale_line(p.shape);
        const int scale_bytes =
            kScaled<T> ? min(Traits::kRows, static_cast<int>(line) - row) * int{sizeof(float)} : 0;
        const float* a_scales = kScaled<T> ? a_scales_of(p, tile) + steps.begin * line : nullptr;
        // Unrolled, the first round would wait for instructions.
#pragma unroll 1
        for (int step = steps.begin; step < steps.end; ++step) {
            std::uint64_t& full = shared.full[ring.stage];
            // At first all stages are empty: the phase before the first counts as complete.
            ptx::mbarrier_wait_opaque(&shared.empty[ring.stage], ring.parity ^ 1);
            // The arrival below makes it visible to whoever waits for the stage.
            if (step == steps.begin) shared.tiles[ring.stage] = tile;
            ptx::mbarrier_expect_bytes(
                &full, (Traits::kRows + Traits::kColumns) * Traits::kStageBytes + scale_bytes);
            if constexpr (kScaled<T>) {
                ptx::bulk_load(shared.a_scales[ring.stage], a_scales, scale_bytes, &full);
                a_scales += line;
            }
            const int k = step * Traits::kDepth;
            load_rows<Traits::kCluster == Cluster::kBeside, Traits::kBoxA>(
                shared.a[ring.stage], operands.a, &full, k, row, kMasked ? tile.group : 0);
            load_rows<Traits::kCluster == Cluster::kStacked, Traits::kBoxB>(
                shared.b[ring.stage], operands.b, &full, k, tile.column, tile.group);
            ring.advance();
        }
    }
    if constexpr (Traits::kPairs) {
        // The other block's last arrivals must still find this one.
        for (int stage = 0; stage < Traits::kStages; ++stage, ring.advance()) {
            ptx::mbarrier_wait(&shared.empty[ring.stage], ring.parity ^ 1);
        }
    }
}

// The second warp's part of FP8's stages: a lane loads the scales of one step of 32.
template <class Traits>
__device__ void produce_column_scales(const Gemm& p, const Operands& operands,
                                      typename Traits::SharedStorage& shared) {
    const int lane = threadIdx.x % 32;
    const int tiles = tile_count(shared.list, operands.walk);
    const Part steps = steps_of<Traits>(p, operands);
    Ring<Traits::kStages> ring;
    const auto split = split_of<Traits>(operands);
    for (int number = split.cluster(); number < tiles; number += split.clusters()) {
        const Tile tile = find_tile<Traits>(p, operands, shared, number);
        const float* line = b_scales_of(p, tile);
        const int to_second = to_next_b_scales(p, tile);
        for (int start = steps.begin; start < steps.end; start += 32) {
            const int step = min(start + lane, steps.end - 1);
            const float2 scales = {__ldg(line + step), __ldg(line + to_second + step)};
#pragma unroll 1
            for (int owner = 0; owner < min(32, steps.end - start); ++owner) {
                ptx::mbarrier_wait(&shared.empty[ring.stage], ring.parity ^ 1);
                if (lane == owner) {
                    shared.b_scales[ring.stage] = scales;
                    ptx::mbarrier_arrive(&shared.full[ring.stage]);
                }
                ring.advance();
            }
        }
    }
}

template <class Traits>
__device__ void consume(const Gemm& p, const Operands& operands,
                        typename Traits::SharedStorage& shared) {
    const int tiles = tile_count(shared.list, operands.walk);
    const Part steps = steps_of<Traits>(p, operands);
    const int consumer = __shfl_sync(~0u, threadIdx.x / 128 - 1, 0);
    const int first_row = Traits::kAlternates ? 0 : consumer * 64;
    const Descriptors descriptors = descriptors_of<Traits>(shared, first_row);
    const auto split = split_of<Traits>(operands);
    const int clusters = split.clusters();
    const int stride = Traits::kAlternates ? 2 * clusters : clusters;
    int number = split.cluster();
    Ring<Traits::kStages> ring;
    const auto skip_tile_of_other = [&] {
        if (Traits::kAlternates) ring.skip(steps.end - steps.begin);
    };
    if (Traits::kAlternates && consumer == 1) {
        number += clusters;
        skip_tile_of_other();
    }
    // The second consumer lets the first begin.
    constexpr bool kTurns = kScaled<typename Traits::Element> || Traits::kAlternates;
    if (kTurns && consumer == 1) pass_turn<Traits>(1);
    // The first tile is found here too: scales of b then come from memory along with the operands.
    constexpr bool kFindsFirst = kScaled<typename Traits::Element> && !Traits::kStagesColumnScales;
    const int first_number = number;
    for (; number < tiles; number += stride) {
        // Keeps the other's stages behind: a phase and the one after next have the same parity.
        if constexpr (Traits::kAlternates) take_turn<Traits>(consumer);
        Tile tile;
        if (kFindsFirst && number == first_number) {
            tile = find_tile<Traits>(p, operands, shared, number);
        } else {
            // The producer has found the others while earlier ones were summed.
            ptx::mbarrier_wait_opaque(&shared.full[ring.stage], ring.parity);
            tile = shared.tiles[ring.stage];
            __syncwarp();  // all lanes have read it before one releases the stage
        }
        Halves<Traits> sums = {};
        if constexpr (kScaled<typename Traits::Element>) {
            sum_scaled_tile<Traits>(p, tile, shared, steps, first_row, descriptors, ring, sums[0]);
        } else {
            sum_tile<Traits>(shared, steps.end - steps.begin, consumer, descriptors, ring, sums);
        }
        skip_tile_of_other();
        Part eights = {0, Traits::kHalves * Traits::kColumns / 8};
        if constexpr (Traits::kSplits) {
            if (split.blocks() > 1) {
                // A cluster has one tile, so nothing fills the ring any more.
                eights = split.part_of(eights.end, split.rank());
                collect<Traits::kSumThreads>(reinterpret_cast<float4*>(&shared), shared.collected,
                                             (threadIdx.x - 128) % Traits::kSumThreads,
                                             split.rank(), split, eights, sums);
            }
        }
#pragma unroll
        for (int half = 0; half < Traits::kHalves; ++half) {
            const int row = first_row + half * 64;
            const int before = half * Traits::kColumns / 8;
            const Part mine = {eights.begin - before, eights.end - before};
            if constexpr (Traits::kTransposed) {
                store_transposed<Traits>(p, operands, tile, shared, consumer, row, mine,
                                         sums[half]);
            } else if (Traits::kStoresBoxes && operands.stores_boxes) {
                store_boxes<Traits>(operands, tile, shared, row, sums[half]);
            } else {
                store_tile<Traits>(p, tile, shared, row, mine, sums[half]);
            }
        }
    }
    if ((Traits::kStoresBoxes || Traits::kTransposed) && threadIdx.x % 32 == 0) {
        ptx::wait_for_boxes_read();
    }
    // Whoever is next takes the turn, so that none is left over.
    const bool is_next = Traits::kAlternates ? number - clusters < tiles : consumer == 0;
    if (kTurns && is_next) take_turn<Traits>(consumer);
}

template <class Traits>
__global__ void __launch_bounds__(Traits::kThreads, Traits::kBlocks)
    gemm_kernel(const __grid_constant__ Gemm p, const __grid_constant__ Operands operands) {
    extern __shared__ std::uint8_t shared_bytes[];
    // An offset, so that the compiler can still tell that the reference is to shared memory.
    const unsigned start = -ptx::shared_address(shared_bytes) % 1024;
    auto& shared = *reinterpret_cast<typename Traits::SharedStorage*>(shared_bytes + start);
    if (threadIdx.x == 128) {
        ptx::prefetch_map(operands.a);
        ptx::prefetch_map(operands.b);
    }
    if (threadIdx.x / 32 == 0) make_list<Traits::kRows>(p, Traits::kLayout, shared.list);
    if (threadIdx.x == 128) {
        for (int stage = 0; stage < Traits::kStages; ++stage) {
            ptx::mbarrier_init(&shared.full[stage], Traits::kStagesColumnScales ? 2 : 1);
            ptx::mbarrier_init(&shared.empty[stage], Traits::kReaders);
        }
        ptx::mbarrier_init(&shared.collected, 1);
        ptx::fence_mbarrier_init();
    }
    if constexpr (Traits::kPairs) {
        ptx::cluster_arrive();
        ptx::cluster_wait();  // and to the other block
    } else {
        __syncthreads();  // barriers and the list are visible to all
    }
    // Moves registers that the producer does not need to the consumers.
    if (threadIdx.x < 128) {
        ptx::decrease_registers<40>();
        if constexpr (Traits::kStagesColumnScales) {
            // From one lane: known to be the same in all, it saves the producer registers.
            const int warp = __shfl_sync(~0u, threadIdx.x / 32, 0);
            if (warp == 1) produce_column_scales<Traits>(p, operands, shared);
            if (warp != 0) return;
        }
        if (threadIdx.x == 0) produce<Traits>(p, operands, shared);
    } else {
        ptx::increase_registers<Traits::kConsumerRegisters>();
        consume<Traits>(p, operands, shared);
    }
}

}  // namespace gemm::hopper
