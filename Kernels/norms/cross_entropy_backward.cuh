// Cross-entropy backward kernel: elementwise, with three scalars per row.
#pragma once

#include "Kernels/device/exponential.cuh"
#include "Kernels/norms/kernel.cuh"

namespace norms {

struct CrossEntropyBackwardArguments {
    const void* logits;
    const std::int64_t* targets;
    const float* lse;
    const float* loss_gradient;
    void* logits_gradient;
    Geometry geometry;
};

template <class V>
__global__ void __launch_bounds__(max_threads(V::kVectors), min_blocks(V::kVectors))
    cross_entropy_backward_kernel(const __grid_constant__ CrossEntropyBackwardArguments arguments) {
    using T = typename V::T;
    using Slice = typename V::Slice;
    constexpr int kVectors = V::kVectors;
    constexpr int kPer = V::kPer;

    __shared__ TeamStorage storage;
    const Geometry& geometry = arguments.geometry;
    const typename V::Team team(storage, geometry.cluster_blocks);
    const int last_chunk = V::kChunked ? geometry.chunks - 1 : 0;

    uint4 packets[kVectors];
    for (RowWalk<V> walk(geometry); walk.more() && walk.active(); walk.next()) {
        const std::int64_t offset = walk.row * geometry.columns;
        const T* logits = static_cast<const T*>(arguments.logits) + offset;
        T* logits_gradient = static_cast<T*>(arguments.logits_gradient) + offset;
        const Slice slice(team, logits, geometry.columns, true);

        for (int chunk = 0; chunk <= last_chunk; ++chunk) {
            slice.load(logits, chunk, packets);
            const float lse = arguments.lse[walk.row];
            const float gradient = arguments.loss_gradient[walk.row];
            const std::int64_t target = arguments.targets[walk.row];
#pragma unroll
            for (int vector = 0; vector < kVectors; ++vector) {
                const int first = slice.first(chunk, vector);
                float values[kPer];
                device::unpack<T>(packets[vector], values);
#pragma unroll
                for (int element = 0; element < kPer; ++element) {
                    const float share = device::exp_fast(values[element] - lse);
                    const float wanted = first + element == target ? 1.0f : 0.0f;
                    values[element] = (share - wanted) * gradient;
                }
                slice.store(logits_gradient, chunk, vector, values);
            }
        }
    }
}

}  // namespace norms
