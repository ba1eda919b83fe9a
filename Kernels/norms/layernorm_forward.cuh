// LayerNorm forward kernel.
//
// A team of threads holds a row in registers. Mean and variance come from one reduction, of the
// distances from the row's first element and of their squares: however large the mean is, little is
// lost to cancellation, unless that element is an outlier, which is seen and costs a second one.
#pragma once

#include "Kernels/norms/kernel.cuh"

namespace norms {

struct LayerNormForwardArguments {
    const void* x;
    const void* weight;
    const void* bias;
    void* out;
    float* mean;
    float* rstd;
    Geometry geometry;
    bool wide_weight;
    float epsilon;
};

// Sums over a thread's elements of one chunk, of the distance from `shift` and of its square.
template <class V>
__device__ device::TwoSums distances_of(const typename V::Slice& slice,
                                        uint4 (&packets)[V::kVectors], int chunk, float shift) {
    constexpr int kPer = V::kPer;
    float sums[2] = {};
    float squares[2] = {};
#pragma unroll
    for (int vector = 0; vector < V::kVectors; ++vector) {
        float values[kPer];
        device::unpack<typename V::T>(packets[vector], values);
        const int first = slice.first(chunk, vector);
#pragma unroll
        for (int element = 0; element < kPer; ++element) {
            // Aligned packets are inside or outside as a whole: one test serves all elements.
            const float distance =
                slice.holds(V::kAligned ? first : first + element) ? values[element] - shift : 0.0f;
            sums[element % 2] += distance;
            squares[element % 2] = fmaf(distance, distance, squares[element % 2]);
        }
    }
    return {sums[0] + sums[1], squares[0] + squares[1]};
}

template <class V>
__global__ void __launch_bounds__(max_threads(V::kVectors), min_blocks(V::kVectors))
    layernorm_forward_kernel(const __grid_constant__ LayerNormForwardArguments arguments) {
    using T = typename V::T;
    using Slice = typename V::Slice;
    constexpr int kVectors = V::kVectors;
    constexpr int kPer = V::kPer;
    // Only aligned rows keep a thread on the same columns; and fp32 weights need the registers.
    constexpr bool kKeepWeight = V::kAligned && kVectors * kPer <= 8;

    __shared__ device::TeamStorage storage;
    const Geometry& geometry = arguments.geometry;
    device::RowTeam team(storage, geometry.cluster_blocks);
    const int last_chunk = V::kChunked ? geometry.chunks - 1 : 0;

    // The share of the squares that must be left of them: a relative error of 10 roundings at most.
    constexpr float kLeft = 0.1f;
    const float per_column = 1.0f / static_cast<float>(geometry.columns);
    RowWalk walk(geometry);
    const bool wide = arguments.wide_weight;
    RowSource<V, 1> source(geometry, {arguments.x}, walk);
    uint4 packets[kVectors];
    float kept_weight[kVectors][kPer];
    float kept_bias[kVectors][kPer];
    bool weight_is_loaded = false;
    for (; walk.more(); walk.next()) {
        const Slice slice(team, source.row(0, walk), geometry.columns, walk.active());

        source.wait();
        float mean = walk.active() ? source.element(0, walk, 0) : 0.0f;
        device::TwoSums sums = device::TwoSums::neutral();
        for (int chunk = 0; chunk <= last_chunk; ++chunk) {
            source.load(0, walk, slice, chunk, packets);
            if (kKeepWeight && !weight_is_loaded) {
                const Slice columns(team, source.row(0, walk), geometry.columns, true);
                load_columns(columns, arguments.weight, wide, kept_weight);
                load_columns(columns, arguments.bias, wide, kept_bias);
                weight_is_loaded = true;
            }
            sums = sums + distances_of<V>(slice, packets, chunk, mean);
        }
        device::stay_packed(packets);
        sums = team.reduce(sums);
        float distance = sums.first * per_column;
        mean += distance;
        float variance = fmaf(-distance, distance, sums.second * per_column);
        // Where the first element was so far from the mean that little of the squares is left, they
        // are taken anew from the mean. Rows of a warp go along, for they meet in reductions.
        const bool far = variance < kLeft * sums.second * per_column;
        if (__any_sync(0xffffffffu, far)) {
            device::TwoSums again = device::TwoSums::neutral();
            for (int chunk = 0; chunk <= last_chunk; ++chunk) {
                if (last_chunk > 0) source.load(0, walk, slice, chunk, packets);
                again = again + distances_of<V>(slice, packets, chunk, mean);
            }
            device::stay_packed(packets);
            again = team.reduce(again);
            distance = again.first * per_column;
            variance = fmaf(-distance, distance, again.second * per_column);
            mean += distance;
        }
        source.next();
        const float rstd = rsqrtf(fmaxf(variance, 0.0f) + arguments.epsilon);
        if (team.leads() && walk.active()) {
            if (arguments.mean != nullptr) arguments.mean[walk.row] = mean;
            if (arguments.rstd != nullptr) arguments.rstd[walk.row] = rstd;
        }

        T* out = static_cast<T*>(arguments.out) + walk.row * geometry.columns;
        for (int chunk = last_chunk; chunk >= 0; --chunk) {
            // The last chunk is still in registers.
            if (chunk != last_chunk) source.load(0, walk, slice, chunk, packets);
#pragma unroll
            for (int vector = 0; vector < kVectors; ++vector) {
                float values[kPer];
                float row_weight[kPer];
                float row_bias[kPer];
                device::unpack<T>(packets[vector], values);
                if (!kKeepWeight) {
                    slice.shared_values(arguments.weight, wide, chunk, vector, row_weight);
                    slice.shared_values(arguments.bias, wide, chunk, vector, row_bias);
                }
                const auto& weight = kKeepWeight ? kept_weight[vector] : row_weight;
                const auto& bias = kKeepWeight ? kept_bias[vector] : row_bias;
#pragma unroll
                for (int element = 0; element < kPer; ++element) {
                    values[element] =
                        fmaf((values[element] - mean) * rstd, weight[element], bias[element]);
                }
                slice.store(out, chunk, vector, values);
            }
        }
    }
}

}  // namespace norms
