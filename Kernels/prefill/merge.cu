// Merges the parts of queries whose keys were split, four dimensions of a row per thread.
#include "Kernels/device/convert.cuh"
#include "Kernels/device/dispatch.h"
#include "Kernels/device/integers.h"
#include "Kernels/device/launch.h"
#include "Kernels/device/partial_row.cuh"
#include "Kernels/device/ptx/grid_dependency.cuh"
#include "Kernels/prefill/arguments.cuh"

namespace prefill {
namespace {

using device::PartialRow;

constexpr int kThreads = 128;
// Parts that a thread loads together.
constexpr int kLoads = 8;

template <class T, int kValueDim>
__global__ void __launch_bounds__(kThreads)
    merge_kernel(const __grid_constant__ PrefillArguments arguments) {
    constexpr int kRowThreads = kValueDim / 4;
    const Merge merge = arguments.parts.merges[blockIdx.y];
    // Of a query and head, counted from the first.
    const std::int64_t row = (std::int64_t{blockIdx.x} * kThreads + threadIdx.x) / kRowThreads;
    const std::int64_t rows = std::int64_t{merge.rows} * arguments.heads;
    if (row >= rows) return;
    const int dim = threadIdx.x % kRowThreads * 4;
    const std::int64_t first = std::int64_t{merge.part_row} * arguments.heads + row;
    // The parts come from the previous kernel.
    device::ptx::wait_for_previous_grid();
    PartialRow merged;
    for (int part = 0; part < merge.parts; part += kLoads) {
        PartialRow loaded[kLoads];
#pragma unroll
        for (int index = 0; index < kLoads; ++index) {
            if (part + index >= merge.parts) continue;
            const std::int64_t at = first + (part + index) * rows;
            const float2 maximum = __ldcg(arguments.parts.maxima + at);
            const float* sums = arguments.parts.sums + at * kValueDim + dim;
            loaded[index] = {maximum.x, maximum.y, __ldcg(reinterpret_cast<const float4*>(sums))};
        }
        merged.add(loaded);
    }
    const std::int64_t place = std::int64_t{merge.first_row} * arguments.heads + row;
    const float inverse = 1.0f / merged.total;
    const float4 sums = merged.sums;
    *reinterpret_cast<uint2*>(static_cast<T*>(arguments.out) + place * kValueDim + dim) = {
        device::pack_pair(sums.x * inverse, sums.y * inverse, T{}),
        device::pack_pair(sums.z * inverse, sums.w * inverse, T{})};
    if (arguments.lse != nullptr && dim == 0) {
        arguments.lse[place] = (merged.largest + log2f(merged.total)) * kLn2;
    }
}

}  // namespace

void launch_merge(const Prefill& params, cudaStream_t stream) {
    device::dispatch<__half, __nv_bfloat16>(params.dtype, [&](auto element) {
        using T = decltype(element);
        const std::int64_t threads =
            std::int64_t{params.parts.most_rows} * params.heads * params.value_dim / 4;
        device::Launch shape = device::cover(threads, kThreads);
        shape.grid.y = static_cast<unsigned>(params.parts.merge_count);
        shape.overlaps_previous = true;
        const auto kernel = params.value_dim == 64    ? merge_kernel<T, 64>
                            : params.value_dim == 128 ? merge_kernel<T, 128>
                                                      : merge_kernel<T, 256>;
        device::launch("prefill_merge", kernel, shape, stream, arguments_of(params));
    });
}

}  // namespace prefill
