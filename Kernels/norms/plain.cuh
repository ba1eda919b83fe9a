// Helpers of the plain kernels: one block a row, a tree sum in shared memory, nothing clever.
#pragma once

#include <algorithm>
#include <cstdint>

#include "Kernels/device/convert.cuh"
#include "Kernels/norms/kernel.cuh"

namespace norms {

constexpr int kPlainThreads = 256;

inline device::Launch plain_shape(std::int64_t rows) {
    device::Launch shape;
    shape.grid = dim3(static_cast<unsigned>(std::min<std::int64_t>(rows, 1 << 30)));
    shape.block = dim3(kPlainThreads);
    return shape;
}

template <class Combine>
__device__ float plain_reduce(float value, Combine combine) {
    __shared__ float values[kPlainThreads];
    values[threadIdx.x] = value;
    // Orders all threads' values before the tree reads them; below, each level before the next.
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

// `kernel_of(element)` is the plain kernel for that element type.
template <class Params, class KernelOf>
void launch_plain_rows(const char* name, const Params& params, cudaStream_t stream,
                       KernelOf&& kernel_of) {
    dispatch_type(params.type, [&](auto element) {
        device::launch(name, kernel_of(element), plain_shape(params.rows), stream, params);
    });
}

// One element of a vector of columns that is fp32 or T.
template <class T>
__device__ float plain_column(const void* vector, ElementType type, int column) {
    return type == ElementType::kF32 ? static_cast<const float*>(vector)[column]
                                     : device::to_float(static_cast<const T*>(vector)[column]);
}

}  // namespace norms
