// LayerNorm forward kernel.
//
// A team of threads holds a row in registers. Each thread takes the mean of its own elements and
// the sum of squared distances from it; the team merges these moments in one reduction. That reads
// the row once and does not suffer from cancellation, however large the mean is.
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

// The moments of a thread's elements of one chunk.
template <class T, int kVectors, bool kAligned>
__device__ device::Moments moments_of(const device::RowSlice<T, kVectors, kAligned>& slice,
                                      uint4 (&packets)[kVectors], int chunk) {
    constexpr int kPer = device::kPerPacket<T>;
    int count = 0;
    float sum = 0.0f;
#pragma unroll
    for (int vector = 0; vector < kVectors; ++vector) {
        float values[kPer];
        device::unpack<T>(packets[vector], values);
        count += slice.held(chunk, vector);
#pragma unroll
        for (float value : values) sum += value;  // Outside the row they are 0.
    }
    if (count == 0) return device::Moments::neutral();
    const float mean = sum / static_cast<float>(count);
    float squares = 0.0f;
    device::stay_packed(packets);
#pragma unroll
    for (int vector = 0; vector < kVectors; ++vector) {
        float values[kPer];
        device::unpack<T>(packets[vector], values);
        const int first = slice.first(chunk, vector);
#pragma unroll
        for (int element = 0; element < kPer; ++element) {
            // Aligned packets are inside or outside as a whole: one test serves all elements.
            const float distance =
                slice.holds(kAligned ? first : first + element) ? values[element] - mean : 0.0f;
            squares = fmaf(distance, distance, squares);
        }
    }
    return {static_cast<float>(count), mean, squares};
}

template <class T, int kVectors, bool kAligned>
__global__ void __launch_bounds__(max_threads(kVectors), min_blocks(kVectors))
    layernorm_forward_kernel(const __grid_constant__ LayerNormForwardArguments arguments) {
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

        device::Moments moments = device::Moments::neutral();
        for (int chunk = 0; chunk <= last_chunk; ++chunk) {
            slice.load(x, chunk, packets);
            const device::Moments chunk_moments = moments_of(slice, packets, chunk);
            moments = kChunked<kVectors> ? moments + chunk_moments : chunk_moments;
        }
        device::stay_packed(packets);
        moments = team.reduce(moments);
        const float mean = moments.mean;
        const float variance = moments.squares / static_cast<float>(geometry.columns);
        const float rstd = rsqrtf(variance + arguments.epsilon);
        if (team.leads() && walk.active()) {
            if (arguments.mean != nullptr) arguments.mean[walk.row] = mean;
            if (arguments.rstd != nullptr) arguments.rstd[walk.row] = rstd;
        }

        T* out = static_cast<T*>(arguments.out) + offset;
        for (int chunk = last_chunk; chunk >= 0; --chunk) {
            // The last chunk is still in registers.
            if (chunk != last_chunk) slice.load(x, chunk, packets);
#pragma unroll
            for (int vector = 0; vector < kVectors; ++vector) {
                float values[kPer];
                float weight[kPer];
                float bias[kPer];
                device::unpack<T>(packets[vector], values);
                slice.shared_values(arguments.weight, arguments.wide_weight, chunk, vector, weight);
                slice.shared_values(arguments.bias, arguments.wide_weight, chunk, vector, bias);
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
