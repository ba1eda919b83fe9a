// RMSNorm forward kernel.
//
// A team of threads (part of a warp, a block, or a cluster) holds a row in registers: it is read
// from memory once, reduced, scaled and written. All packets of a thread are loaded before the
// first is used. The weight is read once per block where registers allow (rows then share it), else
// per row from L1.
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

template <class T, int kVectors, bool kAligned>
__global__ void __launch_bounds__(max_threads(kVectors), min_blocks(kVectors))
    rmsnorm_forward_kernel(const __grid_constant__ RmsNormForwardArguments arguments) {
    using Slice = device::RowSlice<T, kVectors, kAligned>;
    constexpr int kPer = Slice::kPer;
    // Only aligned rows keep a thread on the same columns; and fp32 weights need the registers.
    constexpr bool kKeepWeight = kAligned && kVectors * kPer <= 16;

    __shared__ device::TeamStorage storage;
    const Geometry& geometry = arguments.geometry;
    device::RowTeam team(storage, geometry.cluster_blocks);
    const int last_chunk = kChunked<kVectors> ? geometry.chunks - 1 : 0;

    uint4 packets[kVectors];
    float kept_weight[kVectors][kPer];
    bool weight_is_loaded = false;

    for (RowWalk walk(geometry); walk.more(); walk.next()) {
        const std::int64_t offset = walk.row * geometry.columns;
        const T* x = static_cast<const T*>(arguments.x) + offset;
        const Slice slice(team, x, geometry.columns, walk.active());

        device::Sum squares = device::Sum::neutral();
        for (int chunk = 0; chunk <= last_chunk; ++chunk) {
            slice.load(x, chunk, packets);
            if (kKeepWeight && !weight_is_loaded) {
                const Slice columns(team, x, geometry.columns, true);
#pragma unroll
                for (int vector = 0; vector < kVectors; ++vector) {
                    columns.shared_values(arguments.weight, arguments.wide_weight, 0, vector,
                                          kept_weight[vector]);
                }
                weight_is_loaded = true;
            }
#pragma unroll
            for (int vector = 0; vector < kVectors; ++vector) {
                float values[kPer];
                device::unpack<T>(packets[vector], values);
#pragma unroll
                for (float value : values) squares.value = fmaf(value, value, squares.value);
            }
        }
        device::stay_packed(packets);
        const float mean = team.reduce(squares).value / static_cast<float>(geometry.columns);
        const float rstd = rsqrtf(mean + arguments.epsilon);
        if (arguments.rstd != nullptr && team.leads() && walk.active()) {
            arguments.rstd[walk.row] = rstd;
        }

        T* out = static_cast<T*>(arguments.out) + offset;
        for (int chunk = last_chunk; chunk >= 0; --chunk) {
            // The last chunk is still in registers.
            if (chunk != last_chunk) slice.load(x, chunk, packets);
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
                slice.store(out, chunk, vector, values);
            }
        }
    }
}

}  // namespace norms
