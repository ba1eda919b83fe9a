// Fused residual addition and RMSNorm kernel.
//
// As rmsnorm_forward, with the sum of two rows in registers. The new residual is stored before the
// reduction, so that its traffic overlaps the wait.
#pragma once

#include "Kernels/norms/kernel.cuh"

namespace norms {

struct FusedAddRmsNormArguments {
    void* x;
    void* residual;
    const void* weight;
    Geometry geometry;
    bool wide_weight;
    float epsilon;
};

template <class T, int kVectors, bool kAligned>
__global__ void __launch_bounds__(max_threads(kVectors), min_blocks(kVectors))
    fused_add_rmsnorm_kernel(const __grid_constant__ FusedAddRmsNormArguments arguments) {
    using Slice = device::RowSlice<T, kVectors, kAligned>;
    constexpr int kPer = Slice::kPer;

    __shared__ device::TeamStorage storage;
    const Geometry& geometry = arguments.geometry;
    device::RowTeam team(storage, geometry.cluster_blocks);
    const int last_chunk = kChunked<kVectors> ? geometry.chunks - 1 : 0;

    uint4 added[kVectors];
    uint4 packets[kVectors];
    for (RowWalk walk(geometry); walk.more(); walk.next()) {
        const std::int64_t offset = walk.row * geometry.columns;
        T* x = static_cast<T*>(arguments.x) + offset;
        T* residual = static_cast<T*>(arguments.residual) + offset;
        const Slice slice(team, x, geometry.columns, walk.active());

        device::Sum squares = device::Sum::neutral();
        for (int chunk = 0; chunk <= last_chunk; ++chunk) {
            slice.load(x, chunk, added);
            slice.load(residual, chunk, packets);
#pragma unroll
            for (int vector = 0; vector < kVectors; ++vector) {
                float values[kPer];
                float others[kPer];
                device::unpack<T>(packets[vector], values);
                device::unpack<T>(added[vector], others);
#pragma unroll
                for (int element = 0; element < kPer; ++element) values[element] += others[element];
                // The norm is taken of what is stored, so rounding comes first.
                packets[vector] = device::pack<T>(values);
                slice.store_packet(residual, chunk, vector, packets[vector]);
                device::unpack<T>(packets[vector], values);
#pragma unroll
                for (float value : values) squares.value = fmaf(value, value, squares.value);
            }
        }
        device::stay_packed(packets);
        const float mean = team.reduce(squares).value / static_cast<float>(geometry.columns);
        const float rstd = rsqrtf(mean + arguments.epsilon);

        for (int chunk = last_chunk; chunk >= 0; --chunk) {
            // The last chunk is still in registers; the others come back from the new residual.
            if (chunk != last_chunk) slice.load(residual, chunk, packets);
#pragma unroll
            for (int vector = 0; vector < kVectors; ++vector) {
                float values[kPer];
                float weight[kPer];
                device::unpack<T>(packets[vector], values);
                slice.shared_values(arguments.weight, arguments.wide_weight, chunk, vector, weight);
#pragma unroll
                for (int element = 0; element < kPer; ++element) {
                    values[element] = values[element] * rstd * weight[element];
                }
                slice.store(x, chunk, vector, values);
            }
        }
    }
}

}  // namespace norms
