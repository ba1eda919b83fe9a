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

template <class T, int kVectors, bool kAligned>
__global__ void __launch_bounds__(max_threads(kVectors), min_blocks(kVectors))
    softmax_backward_kernel(const __grid_constant__ SoftmaxBackwardArguments arguments) {
    using Slice = device::RowSlice<T, kVectors, kAligned>;
    constexpr int kPer = Slice::kPer;

    __shared__ device::TeamStorage storage;
    const Geometry& geometry = arguments.geometry;
    device::RowTeam team(storage, geometry.cluster_blocks);
    const int last_chunk = kChunked<kVectors> ? geometry.chunks - 1 : 0;

    uint4 shares[kVectors];
    uint4 gradients[kVectors];
    for (RowWalk walk(geometry); walk.more(); walk.next()) {
        const std::int64_t offset = walk.row * geometry.columns;
        const T* out = static_cast<const T*>(arguments.out) + offset;
        const T* out_gradient = static_cast<const T*>(arguments.out_gradient) + offset;
        const Slice slice(team, out, geometry.columns, walk.active());

        device::Sum products = device::Sum::neutral();
        for (int chunk = 0; chunk <= last_chunk; ++chunk) {
            slice.load(out, chunk, shares);
            slice.load(out_gradient, chunk, gradients);
#pragma unroll
            for (int vector = 0; vector < kVectors; ++vector) {
                float share[kPer];
                float gradient[kPer];
                device::unpack<T>(shares[vector], share);
                device::unpack<T>(gradients[vector], gradient);
#pragma unroll
                for (int element = 0; element < kPer; ++element) {
                    products.value = fmaf(share[element], gradient[element], products.value);
                }
            }
        }
        device::stay_packed(shares);
        device::stay_packed(gradients);
        const float projection = team.reduce(products).value;

        T* x_gradient = static_cast<T*>(arguments.x_gradient) + offset;
        for (int chunk = last_chunk; chunk >= 0; --chunk) {
            // The last chunk is still in registers.
            if (chunk != last_chunk) {
                slice.load(out, chunk, shares);
                slice.load(out_gradient, chunk, gradients);
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
