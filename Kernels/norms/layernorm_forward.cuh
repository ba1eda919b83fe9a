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
        if (V::kAligned && !slice.holds(first)) continue;
#pragma unroll
        for (int element = 0; element < kPer; ++element) {
            // Aligned packets are inside or outside as a whole, and were told apart above.
            const bool inside = V::kAligned || slice.holds(first + element);
            const float distance = inside ? values[element] - shift : 0.0f;
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
    // With more vectors the registers do not suffice for both.
    constexpr bool kEarly = V::kAligned && kVectors <= 2;

    __shared__ device::TeamStorage storage;
    const Geometry& geometry = arguments.geometry;
    device::RowTeam team(storage, geometry.cluster_blocks);
    const int last_chunk = V::kChunked ? geometry.chunks - 1 : 0;

    // The share of the squares that must be left of them: a relative error of 10 roundings at most.
    constexpr float kLeft = 0.1f;
    const float per_column = geometry.per_column;
    RowWalk walk(geometry);
    Columns<V, kEarly> weight(arguments.weight, arguments.wide_weight);
    Columns<V, kEarly> bias(arguments.bias, arguments.wide_weight);
    RowSource<V, 1> source(geometry, {arguments.x}, walk);
    uint4 packets[kVectors];
    for (; walk.more(); walk.next()) {
        const Slice slice(team, source.row(0, walk), geometry.columns, walk.active());

        source.wait();
        float mean = walk.active() ? source.element(0, walk, 0) : 0.0f;
        device::TwoSums sums = device::TwoSums::neutral();
        for (int chunk = 0; chunk <= last_chunk; ++chunk) {
            source.load(0, walk, slice, chunk, packets);
            weight.fetch(slice);
            bias.fetch(slice);
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

        const float shift = -mean * rstd;
        T* out = static_cast<T*>(arguments.out) + walk.row * geometry.columns;
        for (int chunk = last_chunk; chunk >= 0; --chunk) {
            // The last chunk is still in registers.
            if (chunk != last_chunk) source.load(0, walk, slice, chunk, packets);
#pragma unroll
            for (int vector = 0; vector < kVectors; ++vector) {
                float values[kPer];
                float scales[kPer];
                float offsets[kPer];
                device::unpack<T>(packets[vector], values);
                weight.values(slice, chunk, vector, scales);
                bias.values(slice, chunk, vector, offsets);
#pragma unroll
                for (int element = 0; element < kPer; ++element) {
                    // In 16 bits one instruction less, which counts here; what it loses where the
                    // mean is large is no more than the mean's own rounding does.
                    const float normal = sizeof(T) == sizeof(float)
                                             ? (values[element] - mean) * rstd
                                             : fmaf(values[element], rstd, shift);
                    values[element] = fmaf(normal, scales[element], offsets[element]);
                }
                slice.store(out, chunk, vector, values);
            }
        }
    }
}

}  // namespace norms
