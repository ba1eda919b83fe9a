// Softmax forward kernel.
//
// A team of threads holds a row in registers. Each warp finds its own maximum and the sum of
// exponentials relative to it; the team merges these pairs in one reduction. Rows of one chunk keep
// the exponentials; otherwise they are recomputed for the output.
#include "Kernels/norms/held_row.cuh"
#include "Kernels/norms/log_sum.cuh"
#include "Kernels/norms/plain.cuh"

namespace norms {
namespace {

template <class V>
__global__ void __launch_bounds__(kMaxThreads<V>, kMinBlocks<V>)
    softmax_forward_kernel(const __grid_constant__ Cut<SoftmaxForward> params) {
    const Geometry& geometry = params.geometry;
    using T = typename V::T;

    __shared__ TeamStorage storage;
    typename V::Team team(storage, geometry.cluster_blocks);

    RowWalk<V> walk(geometry);
    RowSource<V, 1> source(geometry, {params.x}, walk);
    uint4 packets[V::kVectors];
    KeptPowers<V> powers;
    for (; walk.more(); walk.next()) {
        const typename V::Slice slice(team, source.row(0, walk), geometry.columns, walk.active());

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
        total = team.reduce(total);
        source.next();
        const float scale = 1.0f / total.sum;
        const float kept_scale = scale * device::ptx::exp2_fast(base - total.largest);

        T* out = row_at<V>(static_cast<T*>(params.out), walk.row, geometry.columns);
        for (int chunk = walk.last_chunk; chunk >= 0; --chunk) {
            // The last chunk is still in registers.
            if (chunk != walk.last_chunk) source.load(0, walk, slice, chunk, packets, -INFINITY);
#pragma unroll
            for (int vector = 0; vector < V::kVectors; ++vector) {
                float values[V::kPer];
                if constexpr (kKeepsPowers<V>) {
#pragma unroll
                    for (int element = 0; element < V::kPer; ++element) {
                        values[element] = powers.kept[vector][element] * kept_scale;
                    }
                } else {
                    device::unpack<T>(packets[vector], values);
#pragma unroll
                    for (float& value : values) {
                        value = relative_exp(value, total.largest) * scale;
                    }
                }
                slice.store(out, chunk, vector, values);
            }
        }
    }
}

template <class T>
__global__ void softmax_forward_plain_kernel(const __grid_constant__ SoftmaxForward params) {
    const int columns = params.columns;
    for (std::int64_t row = blockIdx.x; row < params.rows; row += gridDim.x) {
        const T* x = static_cast<const T*>(params.x) + row * columns;
        T* out = static_cast<T*>(params.out) + row * columns;
        const device::LogSum whole = plain_log_sum(x, columns);
        for (int column = threadIdx.x; column < columns; column += blockDim.x) {
            const float value = expf(device::to_float(x[column]) - whole.largest) / whole.sum;
            out[column] = device::from_float<T>(value);
        }
    }
}

}  // namespace

device::Enqueue prepare(const SoftmaxForward& params) {
    return prepare_rows<RowUse::kExponentials>(
        "softmax_forward", params, {{"x", params.x}, {"out", params.out}},
        [](auto variant) { return softmax_forward_kernel<decltype(variant)>; });
}

device::Enqueue prepare_plain(const SoftmaxForward& params) {
    return prepare_plain_rows("softmax_forward_plain", params, [](auto element) {
        return softmax_forward_plain_kernel<decltype(element)>;
    });
}

}  // namespace norms
