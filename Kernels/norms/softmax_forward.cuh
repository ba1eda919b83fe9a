// Softmax forward kernel.
//
// A team of threads holds a row in registers. Each warp finds its own largest element and the sum
// of exponentials relative to it; the team merges these pairs in one reduction. A block with a row
// of its own keeps the exponentials; otherwise they are computed again for the output.
#pragma once

#include "Kernels/norms/log_sum.cuh"

namespace norms {

struct SoftmaxForwardArguments {
    const void* x;
    void* out;
    Geometry geometry;
};

template <class V>
__global__ void __launch_bounds__(max_threads(V::kVectors), min_blocks(V::kVectors))
    softmax_forward_kernel(const __grid_constant__ SoftmaxForwardArguments arguments) {
    using T = typename V::T;
    using Slice = typename V::Slice;
    constexpr int kVectors = V::kVectors;
    constexpr int kPer = V::kPer;

    __shared__ TeamStorage storage;
    const Geometry& geometry = arguments.geometry;
    typename V::Team team(storage, geometry.cluster_blocks);
    const int last_chunk = V::kChunked ? geometry.chunks - 1 : 0;

    RowWalk<V> walk(geometry);
    RowSource<V, 1> source(geometry, {arguments.x}, walk);
    uint4 packets[kVectors];
    std::conditional_t<V::kAlone, Powers<V>, NoPowers> powers;
    for (; walk.more(); walk.next()) {
        const Slice slice(team, source.row(0, walk), geometry.columns, walk.active());

        device::LogSum total = device::LogSum::neutral();
        float base = 0.0f;
        source.wait();
        for (int chunk = 0; chunk <= last_chunk; ++chunk) {
            source.load(0, walk, slice, chunk, packets, -INFINITY);
            const device::LogSum part = log_sum_of<V>(packets, powers);
            base = part.largest;
            total = V::kChunked ? total + part : part;
        }
        if (!V::kAlone) device::stay_packed(packets);
        total = team.reduce(total);
        source.next();
        const float scale = 1.0f / total.sum;
        const float kept_scale = scale * device::ptx::exp2_fast(base - total.largest);

        T* out = static_cast<T*>(arguments.out) + walk.row * geometry.columns;
        for (int chunk = last_chunk; chunk >= 0; --chunk) {
            // The last chunk is still in registers.
            if (chunk != last_chunk) source.load(0, walk, slice, chunk, packets, -INFINITY);
#pragma unroll
            for (int vector = 0; vector < kVectors; ++vector) {
                float values[kPer];
                if constexpr (V::kAlone) {
#pragma unroll
                    for (int element = 0; element < kPer; ++element) {
                        values[element] = powers.kept[vector][element] * kept_scale;
                    }
                } else {
                    device::unpack<T>(packets[vector], values);
#pragma unroll
                    for (float& value : values) {
                        value = relative_exp(value, total.largest) * scale;
                    }
                }
                slice.store(out, chunk, vector, values);
            }
        }
    }
}

}  // namespace norms
