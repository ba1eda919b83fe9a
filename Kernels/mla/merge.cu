// Merges the parts of sequences that were split: one block per row, four dimensions per thread.
// With many parts, the block's teams take turns, so that many loads are in flight; with few parts,
// or many rows, one team is enough and no thread waits for another.
#include <algorithm>

#include "Kernels/device/convert.cuh"
#include "Kernels/device/dispatch.h"
#include "Kernels/device/launch.h"
#include "Kernels/device/ptx/grid_dependency.cuh"
#include "Kernels/device/softmax_rows.cuh"
#include "Kernels/mla/shelves.h"

namespace mla {
namespace {

namespace ptx = device::ptx;

constexpr int kMergeTeamThreads = kLatent / 4;
// One team suffices for this few parts, or for so many rows that their blocks fill the GPU.
constexpr int kFewParts = 8;
constexpr int kManyRows = 1024;

template <class T, int kTeams>
__global__ void __launch_bounds__(kTeams* kMergeTeamThreads)
    merge_kernel(const __grid_constant__ Arguments a, int rows_of_part) {
    const Merge merge = a.workspace.merges[blockIdx.y];
    const int row = blockIdx.x;
    const int team = threadIdx.x / kMergeTeamThreads;
    const int place = threadIdx.x % kMergeTeamThreads;
    const std::int64_t first = static_cast<std::int64_t>(merge.first_slot) * rows_of_part + row;
    const float2* maxima = a.workspace.maxima + first;
    const float* parts = a.workspace.partials + first * kLatent + place * 4;
    // The parts come from the previous kernel.
    ptx::wait_for_previous_grid();
    float top = -INFINITY;
    for (int part = threadIdx.x % 32; part < merge.parts; part += 32) {
        top = fmaxf(top, __ldcg(maxima + static_cast<std::int64_t>(part) * rows_of_part).x);
    }
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) {
        top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, distance));
    }
    float4 sums = {0.0f, 0.0f, 0.0f, 0.0f};
    float total = 0.0f;
#pragma unroll 8
    for (int part = team; part < merge.parts; part += kTeams) {
        const std::int64_t offset = static_cast<std::int64_t>(part) * rows_of_part;
        const float4 values = __ldcg(reinterpret_cast<const float4*>(parts + offset * kLatent));
        const float2 theirs = __ldcg(maxima + offset);
        const float factor = device::shrink(theirs.x, top);
        total += factor * theirs.y;
        sums.x += factor * values.x;
        sums.y += factor * values.y;
        sums.z += factor * values.z;
        sums.w += factor * values.w;
    }
    if constexpr (kTeams > 1) {
        __shared__ float totals[kTeams];
        __shared__ float4 team_sums[kTeams][kMergeTeamThreads];
        team_sums[team][place] = sums;
        if (place == 0) totals[team] = total;
        // All teams' sums are written before the first team adds them.
        __syncthreads();
        if (team != 0) return;
#pragma unroll
        for (int other = 1; other < kTeams; ++other) {
            const float4 theirs = team_sums[other][place];
            sums.x += theirs.x;
            sums.y += theirs.y;
            sums.z += theirs.z;
            sums.w += theirs.w;
            total += totals[other];
        }
    }
    const float scale = total > 0.0f ? 1.0f / total : 0.0f;
    auto* out = static_cast<T*>(a.out) + query_row(a, merge.sequence, row) * kLatent;
    const uint2 packed = {device::pack_pair(sums.x * scale, sums.y * scale, T{}),
                          device::pack_pair(sums.z * scale, sums.w * scale, T{})};
    *reinterpret_cast<uint2*>(out + place * 4) = packed;
}

template <class T, int kTeams>
void launch_teams(const Arguments& arguments, const Plan& plan, cudaStream_t stream) {
    device::Launch shape;
    shape.grid =
        dim3(static_cast<unsigned>(arguments.rows), static_cast<unsigned>(plan.merges.size()));
    shape.block = dim3(kTeams * kMergeTeamThreads);
    shape.overlaps_previous = true;
    const int rows_of_part = plan.config.row_blocks * plan.config.rows;
    device::launch("mla_merge", merge_kernel<T, kTeams>, shape, stream, arguments, rows_of_part);
}

}  // namespace

void launch_merge(const Arguments& arguments, const Plan& plan, device::Dtype dtype,
                  cudaStream_t stream) {
    int most_parts = 0;
    for (const Merge& merge : plan.merges) most_parts = std::max(most_parts, merge.parts);
    const std::size_t rows = plan.merges.size() * static_cast<std::size_t>(arguments.rows);
    const bool one_team = most_parts <= kFewParts || rows >= kManyRows;
    device::dispatch<__half, __nv_bfloat16>(dtype, [&](auto element) {
        using T = decltype(element);
        one_team ? launch_teams<T, 1>(arguments, plan, stream)
                 : launch_teams<T, 4>(arguments, plan, stream);
    });
}

}  // namespace mla
