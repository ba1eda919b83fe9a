// Cross-entropy forward kernel: softmax's reduction without its output. The team's leader reads the
// target's logit; the target itself is loaded a row ahead.
#include "Kernels/norms/log_sum.cuh"
#include "Kernels/norms/plain.cuh"

namespace norms {
namespace {

template <class V>
__global__ void __launch_bounds__(kMaxThreads<V>, kMinBlocks<V, RowUse::kReadOnce>)
    cross_entropy_forward_kernel(const __grid_constant__ Cut<CrossEntropyForward> params) {
    const Geometry& geometry = params.geometry;
    __shared__ TeamStorage storage;
    typename V::Team team(storage, geometry.cluster_blocks);

    RowWalk<V> walk(geometry);
    RowSource<V, 1> source(geometry, {params.logits}, walk);
    const auto target_of = [&](std::int64_t row) -> std::int64_t {
        return team.leads() && row < walk.rows ? params.targets[row] : 0;
    };
    std::int64_t next_target = target_of(walk.row);
    uint4 packets[V::kVectors];
    NoPowers none;
    for (; walk.more(); walk.next()) {
        const typename V::Slice slice(team, source.row(0, walk), geometry.columns, walk.active());
        const bool writes = team.leads() && walk.active();

        device::LogSum total = device::LogSum::neutral();
        source.wait();
        for (int chunk = 0; chunk <= walk.last_chunk; ++chunk) {
            source.load(0, walk, slice, chunk, packets, -INFINITY);
            const device::LogSum part = log_sum_of<V>(packets, none);
            total = V::kChunked ? total + part : part;
        }
        // Only now, because this waits for the target, and the row's loads must not.
        float target_logit = NAN;
        if (writes && next_target >= 0 && next_target < geometry.columns) {
            target_logit = source.element(0, walk, static_cast<int>(next_target));
        }
        next_target = target_of(walk.row + walk.step);
        total = team.reduce_for_leader(total);
        source.next();
        if (writes) {
            const float lse = (total.largest + log2f(total.sum)) * device::kLn2;
            params.lse[walk.row] = lse;
            params.loss[walk.row] = lse - target_logit;
        }
    }
}

template <class T>
__device__ float target_logit(const T* logits, std::int64_t target, int columns) {
    if (target < 0 || target >= columns) return NAN;
    return device::to_float(logits[target]);
}

template <class T>
__global__ void cross_entropy_forward_plain_kernel(
    const __grid_constant__ CrossEntropyForward params) {
    const int columns = params.columns;
    for (std::int64_t row = blockIdx.x; row < params.rows; row += gridDim.x) {
        const T* logits = static_cast<const T*>(params.logits) + row * columns;
        const device::LogSum whole = plain_log_sum(logits, columns);
        if (threadIdx.x == 0) {
            params.lse[row] = whole.largest + logf(whole.sum);
            params.loss[row] = params.lse[row] - target_logit(logits, params.targets[row], columns);
        }
    }
}

}  // namespace

device::Enqueue prepare(const CrossEntropyForward& params) {
    return prepare_rows<RowUse::kReadOnce>(
        "cross_entropy_forward", params, {{"logits", params.logits}},
        [](auto variant) { return cross_entropy_forward_kernel<decltype(variant)>; });
}

device::Enqueue prepare_plain(const CrossEntropyForward& params) {
    return prepare_plain_rows("cross_entropy_forward_plain", params, [](auto element) {
        return cross_entropy_forward_plain_kernel<decltype(element)>;
    });
}

}  // namespace norms
