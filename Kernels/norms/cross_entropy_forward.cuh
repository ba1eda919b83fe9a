// Cross-entropy forward kernel: softmax's reduction without its output. The target's logit is read
// by the team's leader while the reduction is under way.
#pragma once

#include "Kernels/norms/log_sum.cuh"

namespace norms {

struct CrossEntropyForwardArguments {
    const void* logits;
    const std::int64_t* targets;
    float* loss;
    float* lse;
    Geometry geometry;
};

template <class T>
__device__ float target_logit(const T* logits, std::int64_t target, int columns) {
    if (target < 0 || target >= columns) return NAN;
    return device::to_float(logits[target]);
}

template <class T, int kVectors, bool kAligned>
__global__ void __launch_bounds__(max_threads(kVectors), min_blocks(kVectors))
    cross_entropy_forward_kernel(const __grid_constant__ CrossEntropyForwardArguments arguments) {
    using Slice = device::RowSlice<T, kVectors, kAligned>;

    __shared__ device::TeamStorage storage;
    const Geometry& geometry = arguments.geometry;
    device::RowTeam team(storage, geometry.cluster_blocks);
    const int last_chunk = kChunked<kVectors> ? geometry.chunks - 1 : 0;

    uint4 packets[kVectors];
    for (RowWalk walk(geometry); walk.more(); walk.next()) {
        const T* logits = static_cast<const T*>(arguments.logits) + walk.row * geometry.columns;
        const Slice slice(team, logits, geometry.columns, walk.active());
        const bool writes = team.leads() && walk.active();

        device::LogSum total = device::LogSum::neutral();
        float target = 0.0f;
        for (int chunk = 0; chunk <= last_chunk; ++chunk) {
            slice.load(logits, chunk, packets, -INFINITY);
            if (chunk == 0 && writes) {
                target = target_logit(logits, arguments.targets[walk.row], geometry.columns);
            }
            const device::LogSum part = log_sum_of<T>(packets);
            total = kChunked<kVectors> ? total + part : part;
        }
        total = team.reduce(total);
        if (writes) {
            const float lse = total.largest + logf(total.sum);
            arguments.lse[walk.row] = lse;
            arguments.loss[walk.row] = lse - target;
        }
    }
}

}  // namespace norms
