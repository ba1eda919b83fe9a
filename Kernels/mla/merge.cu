// Merges the parts of sequences that were split, four dimensions of a row per thread. A thread
// loads eight parts together, of one row or of several: rows with few parts would otherwise be many
// blocks with little to do. Few rows with many parts are divided further: a block has half of a
// row's dimensions, and its teams take turns.
#include <algorithm>

#include "Kernels/device/convert.cuh"
#include "Kernels/device/dispatch.h"
#include "Kernels/device/integers.h"
#include "Kernels/device/launch.h"
#include "Kernels/device/partial_row.cuh"
#include "Kernels/device/ptx/grid_dependency.cuh"
#include "Kernels/mla/shelves.h"

namespace mla {
namespace {

namespace ptx = device::ptx;

// Parts that a thread loads together.
constexpr int kLoads = 8;
// So many parts are divided among teams, unless there are so many rows that they fill the GPU.
constexpr int kManyParts = 17;
constexpr int kManyRows = 1024;

using device::PartialRow;

template <class T, int kTeamThreads, int kTeams, int kRows>
__global__ void __launch_bounds__(kTeams* kTeamThreads)
    merge_kernel(const __grid_constant__ Arguments a, int rows_of_part) {
    static_assert(kTeams == 1 || kRows == 1, "teams share a row");
    constexpr int kPartsAtOnce = kLoads / kRows;
    const Merge merge = a.workspace.merges[blockIdx.y];
    const int first_row = blockIdx.x * kRows;
    const int team = threadIdx.x / kTeamThreads;
    const int place = threadIdx.x % kTeamThreads;
    const int dim = (blockIdx.z * kTeamThreads + place) * 4;
    const std::int64_t first =
        static_cast<std::int64_t>(merge.first_slot) * rows_of_part + first_row;
    const float2* maxima = a.workspace.maxima + first;
    const float* parts = a.workspace.partials + first * kLatent + dim;
    // The parts come from the previous kernel.
    ptx::wait_for_previous_grid();
    PartialRow merged[kRows];
    for (int part = team; part < merge.parts; part += kPartsAtOnce * kTeams) {
        PartialRow loaded[kRows][kPartsAtOnce];
#pragma unroll
        for (int row = 0; row < kRows; ++row) {
#pragma unroll
            for (int index = 0; index < kPartsAtOnce; ++index) {
                const int number = part + index * kTeams;
                // nvcc 13.0 forgets the members' initialisers in all rows but the first.
                loaded[row][index] = PartialRow();
                if (number >= merge.parts || first_row + row >= a.rows) continue;
                const std::int64_t at = static_cast<std::int64_t>(number) * rows_of_part + row;
                const float2 theirs = __ldcg(maxima + at);
                loaded[row][index] = {
                    theirs.x, theirs.y,
                    __ldcg(reinterpret_cast<const float4*>(parts + at * kLatent))};
            }
        }
#pragma unroll
        for (int row = 0; row < kRows; ++row) merged[row].add(loaded[row]);
    }
    if constexpr (kTeams > 1) {
        __shared__ float4 sums_of_teams[kTeams][kTeamThreads];
        // Every thread of a team has the same.
        __shared__ float2 maxima_of_teams[kTeams];
        sums_of_teams[team][place] = merged[0].sums;
        if (place == 0) maxima_of_teams[team] = {merged[0].largest, merged[0].total};
        // All teams' sums are written before the first team adds them.
        __syncthreads();
        if (team != 0) return;
        PartialRow others[kTeams - 1];
#pragma unroll
        for (int other = 1; other < kTeams; ++other) {
            const float2 theirs = maxima_of_teams[other];
            others[other - 1] = {theirs.x, theirs.y, sums_of_teams[other][place]};
        }
        merged[0].add(others);
    }
#pragma unroll
    for (int row = 0; row < kRows; ++row) {
        if (first_row + row >= a.rows) break;
        const float scale = merged[row].total > 0.0f ? a.value_scale / merged[row].total : 0.0f;
        const float4 sums = merged[row].sums;
        auto* out =
            static_cast<T*>(a.out) + query_row(a, merge.sequence, first_row + row) * kLatent;
        const uint2 packed = {device::pack_pair(sums.x * scale, sums.y * scale, T{}),
                              device::pack_pair(sums.z * scale, sums.w * scale, T{})};
        *reinterpret_cast<uint2*>(out + dim) = packed;
    }
}

template <class T, int kTeamThreads, int kTeams, int kRows>
void launch_teams(const Arguments& arguments, const Plan& plan, cudaStream_t stream) {
    device::Launch shape;
    shape.grid = dim3(static_cast<unsigned>(device::divide_up(arguments.rows, kRows)),
                      static_cast<unsigned>(plan.merges.size()), kLatent / 4 / kTeamThreads);
    shape.block = dim3(kTeams * kTeamThreads);
    shape.overlaps_previous = true;
    const int rows_of_part = plan.config.row_blocks * plan.config.rows;
    device::launch("mla_merge", merge_kernel<T, kTeamThreads, kTeams, kRows>, shape, stream,
                   arguments, rows_of_part);
}

}  // namespace

void launch_merge(const Arguments& arguments, const Plan& plan, device::Dtype dtype,
                  cudaStream_t stream) {
    int most_parts = 0;
    for (const Merge& merge : plan.merges) most_parts = std::max(most_parts, merge.parts);
    const std::size_t rows = plan.merges.size() * static_cast<std::size_t>(arguments.rows);
    device::dispatch<__half, __nv_bfloat16>(dtype, [&](auto element) {
        using T = decltype(element);
        if (most_parts >= kManyParts && rows < kManyRows) {
            return launch_teams<T, 64, 8, 1>(arguments, plan, stream);
        }
        if (most_parts > kLoads / 2) return launch_teams<T, 128, 1, 1>(arguments, plan, stream);
        if (most_parts > kLoads / 4) return launch_teams<T, 128, 1, 2>(arguments, plan, stream);
        launch_teams<T, 128, 1, 4>(arguments, plan, stream);
    });
}

}  // namespace mla
