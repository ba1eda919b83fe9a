// Cross-entropy forward kernel: softmax's reduction without its output. The target's logit is read
// by the team's leader; which one it is, a row ahead.
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

template <class V>
__global__ void __launch_bounds__(max_threads(V::kVectors),
                                  min_blocks(V::kVectors, RowUse::kReadOnce))
    cross_entropy_forward_kernel(const __grid_constant__ CrossEntropyForwardArguments arguments) {
    __shared__ TeamStorage storage;
    const Geometry& geometry = arguments.geometry;
    typename V::Team team(storage, geometry.cluster_blocks);
    const int last_chunk = V::kChunked ? geometry.chunks - 1 : 0;

    RowWalk<V> walk(geometry);
    RowSource<V, 1> source(geometry, {arguments.logits}, walk);
    const auto target_of = [&](std::int64_t row) -> std::int64_t {
        return team.leads() && row < walk.rows ? arguments.targets[row] : 0;
    };
    std::int64_t next_target = target_of(walk.row);
    uint4 packets[V::kVectors];
    NoPowers none;
    for (; walk.more(); walk.next()) {
        const typename V::Slice slice(team, source.row(0, walk), geometry.columns, walk.active());
        const bool writes = team.leads() && walk.active();

        device::LogSum total = device::LogSum::neutral();
        float target_logit = NAN;
        source.wait();
        for (int chunk = 0; chunk <= last_chunk; ++chunk) {
            source.load(0, walk, slice, chunk, packets, -INFINITY);
            // After the loads, because the target is waited for here.
            if (chunk == 0 && writes && next_target >= 0 && next_target < geometry.columns) {
                target_logit = source.element(0, walk, static_cast<int>(next_target));
            }
            if (chunk == 0) next_target = target_of(walk.row + walk.step);
            const device::LogSum part = log_sum_of<V>(packets, none);
            total = V::kChunked ? total + part : part;
        }
        total = team.reduce_for_leader(total);
        source.next();
        if (writes) {
            const float lse = (total.largest + log2f(total.sum)) * device::kLn2;
            arguments.lse[walk.row] = lse;
            arguments.loss[walk.row] = lse - target_logit;
        }
    }
}

}  // namespace norms
