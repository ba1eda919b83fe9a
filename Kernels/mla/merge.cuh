// Merges the parts of sequences that were split: one block a row, four dimensions a thread.
#pragma once

#include "Kernels/mla/mla.cuh"

namespace mla {

constexpr int kMergeThreads = kLatent / 4;
constexpr int kMergeWarps = kMergeThreads / 32;

template <class T>
__global__ void __launch_bounds__(kMergeThreads)
    merge_kernel(const __grid_constant__ Arguments a, int rows_of_part) {
    __shared__ float2 shared[kMergeWarps];
    const Merge merge = a.workspace.merges[blockIdx.y];
    const int row = blockIdx.x;
    const std::int64_t first = static_cast<std::int64_t>(merge.first_slot) * rows_of_part + row;
    const float2* maxima = a.workspace.maxima + first;
    const float* parts = a.workspace.partials + first * kLatent + threadIdx.x * 4;
    // The parts are the previous kernel's.
    ptx::wait_for_previous_grid();
    float top = -INFINITY;
    for (int part = threadIdx.x; part < merge.parts; part += kMergeThreads) {
        top = fmaxf(top, __ldcg(maxima + static_cast<std::int64_t>(part) * rows_of_part).x);
    }
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) {
        top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, distance));
    }
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32].x = top;
    // Orders all warps' maxima before they are read.
    __syncthreads();
#pragma unroll
    for (int warp = 0; warp < kMergeWarps; ++warp) top = fmaxf(top, shared[warp].x);
    float sums[4] = {}, total = 0.0f;
#pragma unroll 8
    for (int part = 0; part < merge.parts; ++part) {
        const std::int64_t offset = static_cast<std::int64_t>(part) * rows_of_part;
        const float4 values = __ldcg(reinterpret_cast<const float4*>(parts + offset * kLatent));
        const float2 theirs = __ldcg(maxima + offset);
        const float factor = device::shrink(theirs.x, top);
        total += factor * theirs.y;
        sums[0] += factor * values.x;
        sums[1] += factor * values.y;
        sums[2] += factor * values.z;
        sums[3] += factor * values.w;
    }
    const float scale = total > 0.0f ? 1.0f / total : 0.0f;
    auto* out = static_cast<T*>(a.out) + query_row(a, merge.sequence, row) * kLatent;
    const uint2 packed = {device::pack_pair(sums[0] * scale, sums[1] * scale, T{}),
                          device::pack_pair(sums[2] * scale, sums[3] * scale, T{})};
    *reinterpret_cast<uint2*>(out + threadIdx.x * 4) = packed;
}

}  // namespace mla
