// Cross-entropy forward and backward in one kernel: softmax's, with the loss, over its own input.
// The team's leader reads the target's logit before the row is overwritten.
#pragma once

#include "Kernels/norms/log_sum.cuh"

namespace norms {

struct CrossEntropyFusedArguments {
    void* logits;
    const std::int64_t* targets;
    float* loss;
    Geometry geometry;
};

template <class V>
__global__ void __launch_bounds__(max_threads(V::kVectors), min_blocks(V::kVectors))
    cross_entropy_fused_kernel(const __grid_constant__ CrossEntropyFusedArguments arguments) {
    using T = typename V::T;
    using Slice = typename V::Slice;
    constexpr int kVectors = V::kVectors;
    constexpr int kPer = V::kPer;
    // Before the first element of any packet.
    constexpr int kNoTarget = -2 * kPer;

    __shared__ TeamStorage storage;
    const Geometry& geometry = arguments.geometry;
    typename V::Team team(storage, geometry.cluster_blocks);
    const int last_chunk = V::kChunked ? geometry.chunks - 1 : 0;

    RowWalk<V> walk(geometry);
    RowSource<V, 1> source(geometry, {arguments.logits}, walk);
    uint4 packets[kVectors];
    std::conditional_t<V::kAlone, Powers<V>, NoPowers> powers;
    for (; walk.more(); walk.next()) {
        const Slice slice(team, source.row(0, walk), geometry.columns, walk.active());
        const std::int64_t given = walk.active() ? arguments.targets[walk.row] : kNoTarget;
        const bool writes = team.leads() && walk.active();

        device::LogSum total = device::LogSum::neutral();
        float base = 0.0f;
        float target_logit = NAN;
        int target = kNoTarget;
        source.wait();
        for (int chunk = 0; chunk <= last_chunk; ++chunk) {
            source.load(0, walk, slice, chunk, packets, -INFINITY);
            // After the loads, because the target is waited for here.
            if (chunk == 0 && given >= 0 && given < geometry.columns) {
                target = static_cast<int>(given);
                if (writes) target_logit = source.element(0, walk, target);
            }
            const device::LogSum part = log_sum_of<V>(packets, powers);
            base = part.largest;
            total = V::kChunked ? total + part : part;
        }
        if (!V::kAlone) device::stay_packed(packets);
        total = team.reduce(total);
        source.next();
        // Where a row has no more than a warp, nothing else orders the leader's load before the
        // stores of others.
        __syncwarp();
        const float scale = 1.0f / total.sum;
        const float kept_scale = scale * device::ptx::exp2_fast(base - total.largest);
        if (writes) {
            const float lse = (total.largest + log2f(total.sum)) * device::kLn2;
            arguments.loss[walk.row] = lse - target_logit;
        }

        T* logits = static_cast<T*>(arguments.logits) + walk.row * geometry.columns;
        for (int chunk = last_chunk; chunk >= 0; --chunk) {
            // The last chunk is still in registers; the others are as they were.
            if (chunk != last_chunk) source.load(0, walk, slice, chunk, packets, -INFINITY);
#pragma unroll
            for (int vector = 0; vector < kVectors; ++vector) {
                float values[kPer];
                if constexpr (!V::kAlone) device::unpack<T>(packets[vector], values);
                const int place = target - slice.first(chunk, vector);
#pragma unroll
                for (int element = 0; element < kPer; ++element) {
                    float& value = values[element];
                    if constexpr (V::kAlone) {
                        value = powers.kept[vector][element] * kept_scale;
                    } else {
                        value = relative_exp(value, total.largest) * scale;
                    }
                    if (element == place) value -= 1.0f;
                }
                slice.store(logits, chunk, vector, values);
            }
        }
    }
}

}  // namespace norms
