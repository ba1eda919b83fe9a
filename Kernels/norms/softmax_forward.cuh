// Softmax forward kernel.
//
// A team of threads holds a row in registers. Each thread finds its own largest element and the sum
// of exponentials relative to it; the team merges these pairs in one reduction. Exponentials are
// computed again for the output, which is cheaper than the registers to keep them.
#pragma once

#include "Kernels/norms/log_sum.cuh"

namespace norms {

struct SoftmaxForwardArguments {
    const void* x;
    void* out;
    Geometry geometry;
};

template <class T, int kVectors, bool kAligned>
__global__ void __launch_bounds__(max_threads(kVectors), min_blocks(kVectors))
    softmax_forward_kernel(const __grid_constant__ SoftmaxForwardArguments arguments) {
    using Slice = device::RowSlice<T, kVectors, kAligned>;
    constexpr int kPer = Slice::kPer;

    __shared__ device::TeamStorage storage;
    const Geometry& geometry = arguments.geometry;
    device::RowTeam team(storage, geometry.cluster_blocks);
    const int last_chunk = kChunked<kVectors> ? geometry.chunks - 1 : 0;

    uint4 packets[kVectors];
    for (RowWalk walk(geometry); walk.more(); walk.next()) {
        const std::int64_t offset = walk.row * geometry.columns;
        const T* x = static_cast<const T*>(arguments.x) + offset;
        const Slice slice(team, x, geometry.columns, walk.active());

        device::LogSum total = device::LogSum::neutral();
        for (int chunk = 0; chunk <= last_chunk; ++chunk) {
            slice.load(x, chunk, packets, -INFINITY);
            const device::LogSum part = log_sum_of<T>(packets);
            total = kChunked<kVectors> ? total + part : part;
        }
        device::stay_packed(packets);
        total = team.reduce(total);
        const float scale = 1.0f / total.sum;

        T* out = static_cast<T*>(arguments.out) + offset;
        for (int chunk = last_chunk; chunk >= 0; --chunk) {
            // The last chunk is still in registers.
            if (chunk != last_chunk) slice.load(x, chunk, packets, -INFINITY);
#pragma unroll
            for (int vector = 0; vector < kVectors; ++vector) {
                float values[kPer];
                device::unpack<T>(packets[vector], values);
#pragma unroll
                for (float& value : values) {
                    value = device::exp_fast(value - total.largest) * scale;
                }
                slice.store(out, chunk, vector, values);
            }
        }
    }
}

}  // namespace norms
