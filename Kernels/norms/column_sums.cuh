// Sums over rows: partial sums of blocks of rows when no row kernel has kept them, and the final
// sum of partial sums. The order is fixed; there are no atomics.
//
// Partial sums are fp32 [kSums][partials][padded columns], where kSums is 1 (weight) or 2 (weight,
// bias).
#pragma once

#include <cstdint>
#include <memory>

#include "Kernels/device/convert.cuh"
#include "Kernels/device/dispatch.h"
#include "Kernels/device/memory.h"
#include "Kernels/device/ptx/grid_dependency.cuh"
#include "Kernels/norms/norms.h"

namespace norms {

constexpr int kColumnThreads = 128;

// Block (i, j) sums rows [j * rows_per_partial, ...) of columns [i * kColumnThreads, ...).
template <class T, bool kCentred>
__global__ void __launch_bounds__(kColumnThreads)
    column_partials_kernel(const __grid_constant__ NormBackward params,
                           std::int64_t rows_per_partial) {
    const int column = static_cast<int>(blockIdx.x * kColumnThreads + threadIdx.x);
    if (column >= params.columns) return;
    const std::int64_t first = blockIdx.y * rows_per_partial;
    const std::int64_t last = min(first + rows_per_partial, params.rows);
    const T* x = static_cast<const T*>(params.x);
    const T* out_gradient = static_cast<const T*>(params.out_gradient);
    float weight_sum = 0.0f;
    float bias_sum = 0.0f;
#pragma unroll 4
    for (std::int64_t row = first; row < last; ++row) {
        const std::int64_t index = row * params.columns + column;
        const float gradient = device::to_float(out_gradient[index]);
        float value = device::to_float(x[index]);
        if constexpr (kCentred) value -= params.mean[row];
        weight_sum = fmaf(gradient, value * params.rstd[row], weight_sum);
        if constexpr (kCentred) bias_sum += gradient;
    }
    const std::int64_t stride = std::int64_t{padded(params.columns)};
    float* partial = params.partials + blockIdx.y * stride + column;
    *partial = weight_sum;
    if constexpr (kCentred) partial[gridDim.y * stride] = bias_sum;
}

constexpr int kSumColumns = 32;
constexpr int kSumLanes = 32;

// Block (i, k) computes the final sums of kSumColumns columns of vector k: each of a column's
// kSumLanes threads adds every kSumLanes-th partial sum, then the lanes are reduced as a tree.
template <class T>
__global__ void __launch_bounds__(kSumColumns* kSumLanes)
    column_sums_kernel(const __grid_constant__ NormBackward params, std::int64_t partial_rows) {
    __shared__ float lanes[kSumLanes][kSumColumns + 1];
    // The partial sums come from the previous grid.
    device::ptx::wait_for_previous_grid();
    const int column = static_cast<int>(blockIdx.x * kSumColumns + threadIdx.x);
    const float* partials =
        params.partials + blockIdx.y * partial_rows * std::int64_t{padded(params.columns)};
    float sum = 0.0f;
    if (column < params.columns) {
#pragma unroll 4
        for (std::int64_t row = threadIdx.y; row < partial_rows; row += kSumLanes) {
            sum += partials[row * std::int64_t{padded(params.columns)} + column];
        }
    }
    lanes[threadIdx.y][threadIdx.x] = sum;
    // All lanes' sums are written before they are read across.
    __syncthreads();
    // Transposed: a warp now holds the lanes of one column.
    sum = lanes[threadIdx.x][threadIdx.y];
#pragma unroll
    for (int distance = kSumLanes / 2; distance > 0; distance /= 2) {
        sum += __shfl_xor_sync(0xffffffffu, sum, distance);
    }
    const int final_column = static_cast<int>(blockIdx.x * kSumColumns + threadIdx.y);
    if (threadIdx.x != 0 || final_column >= params.columns) return;
    void* out = params.column_gradients[blockIdx.y];
    if (params.wide_weight) {
        static_cast<float*>(out)[final_column] = sum;
    } else {
        static_cast<T*>(out)[final_column] = device::from_float<T>(sum);
    }
}

inline int sums_of(const NormBackward& params) { return params.norm == Norm::kLayer ? 2 : 1; }

// Memory for partial sums, freed with the last copy.
inline std::shared_ptr<device::Memory> memory_for_partials(const NormBackward& params,
                                                           std::int64_t rows) {
    device::require(params.norm == Norm::kRms ||
                        (params.mean != nullptr && params.column_gradients[1] != nullptr),
                    "LayerNorm backward needs mean and the gradient of the bias");
    return std::make_shared<device::Memory>(
        sizeof(float) * static_cast<std::size_t>(sums_of(params)) * static_cast<std::size_t>(rows) *
        static_cast<std::size_t>(padded(params.columns)));
}

// Partial sums over `rows_each` rows.
inline device::Enqueue prepare_column_partials(const NormBackward& params, std::int64_t rows_each) {
    device::Launch shape = device::cover(params.columns, kColumnThreads);
    shape.grid.y = static_cast<unsigned>(device::divide_up(params.rows, rows_each));
    return device::dispatch_activations(params.dtype, [&](auto element) {
        using T = decltype(element);
        return device::prepare("column_partials",
                               params.norm == Norm::kLayer ? column_partials_kernel<T, true>
                                                           : column_partials_kernel<T, false>,
                               shape, params, rows_each);
    });
}

// Adds `rows` partial sums per column; starts while the grid that computes them drains.
inline device::Enqueue prepare_column_sums(const NormBackward& params, std::int64_t rows) {
    device::Launch shape = device::cover(params.columns, kSumColumns);
    shape.grid.y = static_cast<unsigned>(sums_of(params));
    shape.block.y = kSumLanes;
    shape.overlaps_previous = true;
    return device::dispatch_activations(params.dtype, [&](auto element) {
        return device::prepare("column_sums", column_sums_kernel<decltype(element)>, shape, params,
                               rows);
    });
}

}  // namespace norms
