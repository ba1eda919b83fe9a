// Cross-entropy forward and backward in one kernel: softmax with the loss, in place. The target's
// logit is read by the thread that overwrites it.
#include "Kernels/norms/held_row.cuh"
#include "Kernels/norms/log_sum.cuh"
#include "Kernels/norms/plain.cuh"

namespace norms {
namespace {

template <class V>
__global__ void __launch_bounds__(kMaxThreads<V>, kMinBlocks<V>)
    cross_entropy_fused_kernel(const __grid_constant__ Cut<CrossEntropyFused> params) {
    const Geometry& geometry = params.geometry;
    using T = typename V::T;
    using Slice = typename V::Slice;
    constexpr int kVectors = V::kVectors;
    constexpr int kPer = V::kPer;
    // Before the first element of any packet.
    constexpr int kNoTarget = -2 * kPer;

    __shared__ TeamStorage storage;
    typename V::Team team(storage, geometry.cluster_blocks);

    RowWalk<V> walk(geometry);
    RowSource<V, 1> source(geometry, {params.logits}, walk);
    uint4 packets[kVectors];
    KeptPowers<V> powers;
    for (; walk.more(); walk.next()) {
        const Slice slice(team, source.row(0, walk), geometry.columns, walk.active());
        const std::int64_t given = walk.active() ? params.targets[walk.row] : kNoTarget;

        device::LogSum total = device::LogSum::neutral();
        float base = 0.0f;
        source.wait();
        for (int chunk = 0; chunk <= walk.last_chunk; ++chunk) {
            source.load(0, walk, slice, chunk, packets, -INFINITY);
            const device::LogSum part = log_sum_of<V>(packets, powers);
            base = part.largest;
            total = V::kChunked ? total + part : part;
        }
        if (!kKeepsPowers<V>) device::stay_packed(packets);
        // Only now, because this waits for the target, and the row's loads must not.
        const bool valid = given >= 0 && given < geometry.columns;
        const int target = valid ? static_cast<int>(given) : kNoTarget;
        const bool writes = walk.active() && (valid ? slice.owns(target) : team.leads());
        const float target_logit = valid && writes ? source.element(0, walk, target) : NAN;
        total = team.reduce(total);
        source.next();
        const float scale = 1.0f / total.sum;
        const float kept_scale = scale * device::ptx::exp2_fast(base - total.largest);
        if (writes) {
            const float lse = (total.largest + log2f(total.sum)) * device::kLn2;
            params.loss[walk.row] = lse - target_logit;
        }

        T* logits = row_at<V>(static_cast<T*>(params.logits), walk.row, geometry.columns);
        for (int chunk = walk.last_chunk; chunk >= 0; --chunk) {
            // The last chunk is still in registers; the others are unmodified in memory.
            if (chunk != walk.last_chunk) source.load(0, walk, slice, chunk, packets, -INFINITY);
#pragma unroll
            for (int vector = 0; vector < kVectors; ++vector) {
                float values[kPer];
                if constexpr (!kKeepsPowers<V>) device::unpack<T>(packets[vector], values);
                // The target among the packet's elements.
                const auto is_target = [&](int element) {
                    if constexpr (V::kWords) {
                        return slice.column(vector, element) == target;
                    } else {
                        return element == target - slice.first(chunk, vector);
                    }
                };
#pragma unroll
                for (int element = 0; element < kPer; ++element) {
                    float& value = values[element];
                    if constexpr (kKeepsPowers<V>) {
                        value = powers.kept[vector][element] * kept_scale;
                    } else {
                        value = relative_exp(value, total.largest) * scale;
                    }
                    if (is_target(element)) value -= 1.0f;
                }
                slice.store(logits, chunk, vector, values);
            }
        }
    }
}

template <class T>
__global__ void cross_entropy_fused_plain_kernel(const __grid_constant__ CrossEntropyFused params) {
    const int columns = params.columns;
    for (std::int64_t row = blockIdx.x; row < params.rows; row += gridDim.x) {
        T* logits = static_cast<T*>(params.logits) + row * columns;
        const device::LogSum whole = plain_log_sum(logits, columns);
        const float lse = whole.largest + logf(whole.sum);
        const std::int64_t target = params.targets[row];
        if (threadIdx.x == 0 && (target < 0 || target >= columns)) params.loss[row] = NAN;
        for (int column = threadIdx.x; column < columns; column += blockDim.x) {
            const float logit = device::to_float(logits[column]);
            const float wanted = column == target ? 1.0f : 0.0f;
            if (column == target) params.loss[row] = lse - logit;
            logits[column] = device::from_float<T>(expf(logit - lse) - wanted);
        }
    }
}

}  // namespace

device::Enqueue prepare(const CrossEntropyFused& params) {
    return prepare_rows<RowUse::kExponentials>(
        "cross_entropy_fused", params, {{"logits", params.logits}},
        [](auto variant) { return cross_entropy_fused_kernel<decltype(variant)>; });
}

device::Enqueue prepare_plain(const CrossEntropyFused& params) {
    return prepare_plain_rows("cross_entropy_fused_plain", params, [](auto element) {
        return cross_entropy_fused_plain_kernel<decltype(element)>;
    });
}

}  // namespace norms
