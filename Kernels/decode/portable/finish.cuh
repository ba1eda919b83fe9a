// The end of a segment: the warps of a team merge their results and store them, or their part of an
// item. One warp merges one row.
#pragma once

#include "Kernels/decode/portable/products.cuh"

namespace decode::portable {

// Offset of column eight * 8 + column of a product's sums within a row in shared memory: rows
// stored together start in different banks.
__device__ __forceinline__ int sum_place(int row, int eight, int column) {
    return (eight ^ (row & 3)) * 8 + column;
}

// A lane's elements of one row of a warp's sums.
template <class Tr>
__device__ __forceinline__ void read_sums(float (&values)[kPerLane<Tr>], const float* sums,
                                          int row) {
    const int first = threadIdx.x % 32 * kPerLane<Tr>;
    if constexpr (Tr::kFp8) {
        // Even and odd columns are sums of two products.
#pragma unroll
        for (int index = 0; index < kPerLane<Tr>; ++index) {
            const int column = first + index;
            const int eight = column / 16 * 2 + column % 2;
            values[index] = sums[sum_place(row, eight, column % 16 / 4 * 2 + column % 4 / 2)];
        }
    } else {
        const auto packet =
            *reinterpret_cast<const Packet<Tr>*>(sums + sum_place(row, first / 8, first % 8));
        memcpy(values, &packet, sizeof(values));
    }
}

// Adds the results of a team's warps, in shared memory.
template <class Tr>
__device__ __forceinline__ void add_warps(Merged<Tr>& merged, const WarpStorage<Tr>* shared,
                                          Team team, int row) {
    const int first = team.first_warp();
    float factors[Tr::kMostWarps];
#pragma unroll
    for (int warp = 0; warp < Tr::kMostWarps; ++warp) {
        factors[warp] = warp < team.warps ? shared[first + warp].maxima[row].x : -INFINITY;
        merged.largest = fmaxf(merged.largest, factors[warp]);
    }
#pragma unroll
    for (int warp = 0; warp < Tr::kMostWarps; ++warp) {
        if (warp >= team.warps) break;
        const float factor = device::shrink(factors[warp], merged.largest);
        merged.total += shared[first + warp].maxima[row].y * factor;
        float values[kPerLane<Tr>];
        read_sums<Tr>(values, shared[first + warp].sums[row % kHandedRows], row);
#pragma unroll
        for (int index = 0; index < kPerLane<Tr>; ++index) {
            merged.sums[index] += factor * values[index];
        }
    }
}

// Puts this warp's sums of the eight rows from `first` on where the team reads them.
template <class Tr>
__device__ __forceinline__ void hand_over(WarpStorage<Tr>& own, const Softmax<Tr>& softmax,
                                          int first) {
    const int lane = threadIdx.x % 32;
    const int row = lane / 4;
    float* sums = own.sums[row];
#pragma unroll
    for (int tile = 0; tile < Tr::kRowTiles; ++tile) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            if (first != tile * kTileRows + half * kHandedRows) continue;
#pragma unroll
            for (int eight = 0; eight < Tr::kDim / 8; ++eight) {
                const float* pair = softmax.sums[tile][eight] + 2 * half;
                *reinterpret_cast<float2*>(sums + sum_place(row, eight, lane % 4 * 2)) = {pair[0],
                                                                                          pair[1]};
            }
        }
    }
}

// Merges the team's results of a segment and stores them. All threads of the team call it.
template <class Tr>
__device__ void finish(const Arguments& a, const Segment& segment, int first_row, Team team,
                       WarpStorage<Tr>* shared, Softmax<Tr>& softmax) {
    const int lane = threadIdx.x % 32;
    WarpStorage<Tr>& own = shared[threadIdx.x / 32];
#pragma unroll
    for (int tile = 0; tile < Tr::kRowTiles; ++tile) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const float total = device::sum_of_four_lanes(softmax.total[tile][half]);
            if (lane % 4 == 0) {
                own.maxima[tile * kTileRows + half * 8 + lane / 4] = {softmax.largest[tile][half],
                                                                      total};
            }
        }
    }
    // No lane still reads the queries that the sums are about to overwrite.
    __syncwarp();
    const int rows = min(Tr::kRows, a.rows - first_row);
    for (int first = 0; first < rows; first += kHandedRows) {
        hand_over<Tr>(own, softmax, first);
        // All warps' results are written before anyone reads them.
        team.sync();
        const int end = min(first + kHandedRows, rows);
        for (int row = first + team.warp(); row < end; row += team.warps) {
            Merged<Tr> merged;
            add_warps(merged, shared, team, row);
            if (segment.slot < 0) {
                merged.store_result(a, segment, first_row + row);
            } else {
                merged.store_part(a, part_row<Tr>(a, segment.slot, first_row) + row);
            }
        }
        // Results are not overwritten before they have been added, and all are stored.
        team.sync();
    }
}

}  // namespace decode::portable
