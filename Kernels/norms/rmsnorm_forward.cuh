// RMSNorm forward kernel.
//
// A team of threads (part of a warp, a block, or a cluster) holds a row in registers: it is read
// from memory once, reduced, scaled and written. All packets of a thread are loaded before the
// first is used, and those of the weight are asked for before the reduction where registers allow.
#pragma once

#include "Kernels/norms/kernel.cuh"

namespace norms {

struct RmsNormForwardArguments {
    const void* x;
    const void* weight;
    void* out;
    float* rstd;
    Geometry geometry;
    bool wide_weight;
    float epsilon;
};

template <class V>
__device__ __forceinline__ void rmsnorm_forward_rows(const RmsNormForwardArguments& arguments) {
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
    Columns<V, V::kAligned && !V::kChunked> weight(arguments.weight, arguments.wide_weight);
    uint4 packets[kVectors];
    for (; walk.more(); walk.next()) {
        const Slice slice(team, source.row(0, walk), geometry.columns, walk.active());

        float squares[kChains] = {};
        source.wait();
        for (int chunk = 0; chunk <= last_chunk; ++chunk) {
            source.load(0, walk, slice, chunk, packets);
            weight.fetch(slice);
#pragma unroll
            for (int vector = 0; vector < kVectors; ++vector) {
                float values[kPer];
                device::unpack<T>(packets[vector], values);
                add_squares(values, squares);
            }
        }
        device::stay_packed(packets);
        const float mean = team.reduce(sum_of(squares)).value * geometry.per_column;
        source.next();
        const float rstd = rsqrtf(mean + arguments.epsilon);
        if (arguments.rstd != nullptr && team.leads() && walk.active()) {
            arguments.rstd[walk.row] = rstd;
        }

        T* out = static_cast<T*>(arguments.out) + walk.row * geometry.columns;
        for (int chunk = last_chunk; chunk >= 0; --chunk) {
            // The last chunk is still in registers.
            if (chunk != last_chunk) source.load(0, walk, slice, chunk, packets);
#pragma unroll
            for (int vector = 0; vector < kVectors; ++vector) {
                float values[kPer];
                float scales[kPer];
                device::unpack<T>(packets[vector], values);
                weight.values(slice, chunk, vector, scales);
#pragma unroll
                for (int element = 0; element < kPer; ++element) {
                    values[element] = values[element] * rstd * scales[element];
                }
                slice.store(out, chunk, vector, values);
            }
        }
    }
}

template <class V>
__global__ void __launch_bounds__(max_threads(V::kVectors), min_blocks(V::kVectors))
    rmsnorm_forward_kernel(const __grid_constant__ RmsNormForwardArguments arguments) {
    rmsnorm_forward_rows<V>(arguments);
}

// The same with room for more blocks on a multiprocessor.
template <class V>
__global__ void __maxnreg__(48)
    rmsnorm_forward_lean_kernel(const __grid_constant__ RmsNormForwardArguments arguments) {
    rmsnorm_forward_rows<V>(arguments);
}

}  // namespace norms
