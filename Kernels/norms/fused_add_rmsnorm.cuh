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

template <class V>
__global__ void __launch_bounds__(max_threads(V::kVectors), min_blocks(V::kVectors))
    fused_add_rmsnorm_kernel(const __grid_constant__ FusedAddRmsNormArguments arguments) {
    using T = typename V::T;
    using Slice = typename V::Slice;
    constexpr int kVectors = V::kVectors;
    constexpr int kPer = V::kPer;
    // Only aligned rows keep a thread on the same columns; and fp32 weights need the registers.
    constexpr bool kKeepWeight = V::kAligned && kVectors * kPer <= 16;

    __shared__ device::TeamStorage storage;
    const Geometry& geometry = arguments.geometry;
    device::RowTeam team(storage, geometry.cluster_blocks);
    const int last_chunk = V::kChunked ? geometry.chunks - 1 : 0;

    RowWalk walk(geometry);
    RowSource<V, 2> source(geometry, {arguments.x, arguments.residual}, walk);
    uint4 added[kVectors];
    uint4 packets[kVectors];
    float kept_weight[kVectors][kPer];
    bool weight_is_loaded = false;
    for (; walk.more(); walk.next()) {
        const std::int64_t offset = walk.row * geometry.columns;
        T* x = static_cast<T*>(arguments.x) + offset;
        T* residual = static_cast<T*>(arguments.residual) + offset;
        const Slice slice(team, x, geometry.columns, walk.active());

        device::Sum squares = device::Sum::neutral();
        source.wait();
        for (int chunk = 0; chunk <= last_chunk; ++chunk) {
            source.load(0, walk, slice, chunk, added);
            source.load(1, walk, slice, chunk, packets);
            if (kKeepWeight && !weight_is_loaded) {
                load_columns(Slice(team, x, geometry.columns, true), arguments.weight,
                             arguments.wide_weight, kept_weight);
                weight_is_loaded = true;
            }
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
        source.next();
        const float rstd = rsqrtf(mean + arguments.epsilon);

        for (int chunk = last_chunk; chunk >= 0; --chunk) {
            // The last chunk is still in registers; the others come back from the new residual.
            if (chunk != last_chunk) slice.load(residual, chunk, packets);
#pragma unroll
            for (int vector = 0; vector < kVectors; ++vector) {
                float values[kPer];
                float row_weight[kPer];
                device::unpack<T>(packets[vector], values);
                if (!kKeepWeight) {
                    slice.shared_values(arguments.weight, arguments.wide_weight, chunk, vector,
                                        row_weight);
                }
                const auto& weight = kKeepWeight ? kept_weight[vector] : row_weight;
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
