// Softmax backward kernel: a team of threads holds both rows in registers, reduces, writes.
#pragma once

#include "Kernels/norms/kernel.cuh"

namespace norms {

struct SoftmaxBackwardArguments {
    const void* out;
    const void* out_gradient;
    void* x_gradient;
    Geometry geometry;
};

template <class V>
__global__ void __launch_bounds__(max_threads(V::kVectors), min_blocks(V::kVectors))
    softmax_backward_kernel(const __grid_constant__ SoftmaxBackwardArguments arguments) {
    using T = typename V::T;
    using Slice = typename V::Slice;
    constexpr int kVectors = V::kVectors;
    constexpr int kPer = V::kPer;

    __shared__ TeamStorage storage;
    const Geometry& geometry = arguments.geometry;
    typename V::Team team(storage, geometry.cluster_blocks);
    const int last_chunk = V::kChunked ? geometry.chunks - 1 : 0;

    RowWalk<V> walk(geometry);
    RowSource<V, 2> source(geometry, {arguments.out, arguments.out_gradient}, walk);
    uint4 shares[kVectors];
    uint4 gradients[kVectors];
    for (; walk.more(); walk.next()) {
        const Slice slice(team, source.row(0, walk), geometry.columns, walk.active());

        float products[kChains] = {};
        source.wait();
        for (int chunk = 0; chunk <= last_chunk; ++chunk) {
            source.load(0, walk, slice, chunk, shares);
            source.load(1, walk, slice, chunk, gradients);
#pragma unroll
            for (int vector = 0; vector < kVectors; ++vector) {
                float share[kPer];
                float gradient[kPer];
                device::unpack<T>(shares[vector], share);
                device::unpack<T>(gradients[vector], gradient);
#pragma unroll
                for (int element = 0; element < kPer; ++element) {
                    float& sum = products[element % kChains];
                    sum = fmaf(share[element], gradient[element], sum);
                }
            }
        }
        device::stay_packed(shares);
        device::stay_packed(gradients);
        const float projection = team.reduce(sum_of(products)).value;
        source.next();

        T* x_gradient = static_cast<T*>(arguments.x_gradient) + walk.row * geometry.columns;
        for (int chunk = last_chunk; chunk >= 0; --chunk) {
            // The last chunk is still in registers.
            if (chunk != last_chunk) {
                source.load(0, walk, slice, chunk, shares);
                source.load(1, walk, slice, chunk, gradients);
            }
#pragma unroll
            for (int vector = 0; vector < kVectors; ++vector) {
                float share[kPer];
                float gradient[kPer];
                device::unpack<T>(shares[vector], share);
                device::unpack<T>(gradients[vector], gradient);
#pragma unroll
                for (int element = 0; element < kPer; ++element) {
                    share[element] *= gradient[element] - projection;
                }
                slice.store(x_gradient, chunk, vector, share);
            }
        }
    }
}

}  // namespace norms
