// Helpers of the plain kernels: one block per row, a tree sum in shared memory, nothing clever.
#pragma once

#include <algorithm>
#include <cstdint>

#include "Kernels/device/convert.cuh"
#include "Kernels/norms/rows.cuh"

namespace norms {

constexpr int kPlainThreads = 256;

template <class Combine>
__device__ float plain_reduce(float value, Combine combine) {
    __shared__ float values[kPlainThreads];
    values[threadIdx.x] = value;
    // All threads' values are written before the tree reads them; below, the same for each level.
    __syncthreads();
    for (int half = kPlainThreads / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) {
            values[threadIdx.x] = combine(values[threadIdx.x], values[threadIdx.x + half]);
        }
        __syncthreads();
    }
    const float result = values[0];
    // Everyone has read the result before the next call overwrites it.
    __syncthreads();
    return result;
}

__device__ inline float plain_sum(float value) {
    return plain_reduce(value, [](float a, float b) { return a + b; });
}

__device__ inline float plain_max(float value) {
    return plain_reduce(value, [](float a, float b) { return fmaxf(a, b); });
}

// The largest element of a row, and the sum of the exponentials relative to it.
template <class T>
__device__ device::LogSum plain_log_sum(const T* row, int columns) {
    float largest = -INFINITY;
    for (int column = threadIdx.x; column < columns; column += blockDim.x) {
        largest = fmaxf(largest, device::to_float(row[column]));
    }
    largest = plain_max(largest);
    float sum = 0.0f;
    for (int column = threadIdx.x; column < columns; column += blockDim.x) {
        sum += expf(device::to_float(row[column]) - largest);
    }
    return {largest, plain_sum(sum)};
}

// One element of a column vector that is fp32 if `wide`, else T.
template <class T>
__device__ float plain_column(const void* vector, bool wide, int column) {
    return wide ? static_cast<const float*>(vector)[column]
                : device::to_float(static_cast<const T*>(vector)[column]);
}

// `kernel_of(element)` is the plain kernel for that element type.
template <class Params, class KernelOf>
device::Enqueue prepare_plain_rows(const char* name, const Params& params, KernelOf&& kernel_of) {
    check(params);
    const std::int64_t blocks = std::min<std::int64_t>(params.rows, 1 << 30);
    return device::dispatch_activations(params.dtype, [&](auto element) {
        return device::prepare(name, kernel_of(element), device::blocks_of(blocks, kPlainThreads),
                               params);
    });
}

}  // namespace norms
