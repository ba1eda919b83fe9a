// Sums over rows: partial sums of blocks of rows where no row kernel has kept them, and the final
// sum of partial sums. Orders are fixed; there are no atomics.
//
// Partial sums are fp32 [kSums][partials][columns], kSums being 1 (weight) or 2 (weight, bias).
#pragma once

#include <cstdint>

#include "Kernels/device/convert.cuh"
#include "Kernels/device/ptx/grid_dependency.cuh"
#include "Kernels/norms/element_type.h"

namespace norms {

struct ColumnPartialsArguments {
    const void* x;
    const void* out_gradient;
    const float* mean;
    const float* rstd;
    float* partials;
    std::int64_t rows;
    int columns;
    std::int64_t rows_per_partial;
};

constexpr int kColumnThreads = 128;

// Block (i, j) adds up rows [j * rows_per_partial, ...) of columns [i * kColumnThreads, ...).
template <class T, bool kCentred>
__global__ void __launch_bounds__(kColumnThreads)
    column_partials_kernel(const __grid_constant__ ColumnPartialsArguments arguments) {
    const int column = static_cast<int>(blockIdx.x * kColumnThreads + threadIdx.x);
    if (column >= arguments.columns) return;
    const std::int64_t first = blockIdx.y * arguments.rows_per_partial;
    const std::int64_t last = min(first + arguments.rows_per_partial, arguments.rows);
    const T* x = static_cast<const T*>(arguments.x);
    const T* out_gradient = static_cast<const T*>(arguments.out_gradient);
    float weight_sum = 0.0f;
    float bias_sum = 0.0f;
#pragma unroll 4
    for (std::int64_t row = first; row < last; ++row) {
        const std::int64_t index = row * arguments.columns + column;
        const float gradient = device::to_float(out_gradient[index]);
        float value = device::to_float(x[index]);
        if constexpr (kCentred) value -= arguments.mean[row];
        weight_sum = fmaf(gradient, value * arguments.rstd[row], weight_sum);
        if constexpr (kCentred) bias_sum += gradient;
    }
    float* partial = arguments.partials + static_cast<std::int64_t>(blockIdx.y) * arguments.columns;
    partial[column] = weight_sum;
    if constexpr (kCentred) {
        partial[static_cast<std::int64_t>(gridDim.y) * arguments.columns + column] = bias_sum;
    }
}

struct ColumnSumsArguments {
    const float* partials;
    void* sums[2];
    std::int64_t partial_rows;
    int columns;
    bool wide;
};

constexpr int kSumColumns = 32;
constexpr int kSumLanes = 32;

// Block (i, k) makes the final sums of kSumColumns columns of vector k: each of kSumLanes threads
// of a column adds every kSumLanes-th partial sum, then the lanes are added as a tree.
template <class T>
__global__ void __launch_bounds__(kSumColumns* kSumLanes)
    column_sums_kernel(const __grid_constant__ ColumnSumsArguments arguments) {
    __shared__ float lanes[kSumLanes][kSumColumns + 1];
    // The partial sums are the previous grid's.
    device::ptx::wait_for_previous_grid();
    const int column = static_cast<int>(blockIdx.x * kSumColumns + threadIdx.x);
    const float* partials =
        arguments.partials + blockIdx.y * arguments.partial_rows * arguments.columns;
    float sum = 0.0f;
    if (column < arguments.columns) {
#pragma unroll 4
        for (std::int64_t row = threadIdx.y; row < arguments.partial_rows; row += kSumLanes) {
            sum += partials[row * arguments.columns + column];
        }
    }
    lanes[threadIdx.y][threadIdx.x] = sum;
    // Orders the sums of all lanes before they are read across.
    __syncthreads();
    // Transposed: a warp now holds the lanes of one column.
    sum = lanes[threadIdx.x][threadIdx.y];
#pragma unroll
    for (int distance = kSumLanes / 2; distance > 0; distance /= 2) {
        sum += __shfl_xor_sync(0xffffffffu, sum, distance);
    }
    const int final_column = static_cast<int>(blockIdx.x * kSumColumns + threadIdx.y);
    if (threadIdx.x != 0 || final_column >= arguments.columns) return;
    void* out = arguments.sums[blockIdx.y];
    if (arguments.wide) {
        static_cast<float*>(out)[final_column] = sum;
    } else {
        static_cast<T*>(out)[final_column] = device::from_float<T>(sum);
    }
}

}  // namespace norms
