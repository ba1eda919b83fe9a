// Cross-entropy backward kernel: elementwise, with three scalars per row.
#include "Kernels/device/exponential.cuh"
#include "Kernels/norms/plain.cuh"

namespace norms {
namespace {

template <class V>
__global__ void __launch_bounds__(kMaxThreads<V>, kMinBlocks<V>)
    cross_entropy_backward_kernel(const __grid_constant__ Cut<CrossEntropyBackward> params) {
    const Geometry& geometry = params.geometry;
    using T = typename V::T;

    const RowPart<V> part(geometry);
    uint4 packets[V::kVectors];
    for (RowWalk<V> walk(geometry); walk.more() && walk.active(); walk.next()) {
        const std::int64_t offset = walk.row * geometry.columns;
        const T* logits = static_cast<const T*>(params.logits) + offset;
        T* logits_gradient = static_cast<T*>(params.logits_gradient) + offset;
        const typename V::Slice slice(part, logits, geometry.columns, true);

        for (int chunk = 0; chunk <= walk.last_chunk; ++chunk) {
            slice.load(logits, chunk, packets);
            const float lse = params.lse[walk.row];
            const float gradient = params.loss_gradient[walk.row];
            const std::int64_t target = params.targets[walk.row];
#pragma unroll
            for (int vector = 0; vector < V::kVectors; ++vector) {
                const int first = slice.first(chunk, vector);
                float values[V::kPer];
                device::unpack<T>(packets[vector], values);
#pragma unroll
                for (int element = 0; element < V::kPer; ++element) {
                    const float share = device::exp_fast(values[element] - lse);
                    const float wanted = first + element == target ? 1.0f : 0.0f;
                    values[element] = (share - wanted) * gradient;
                }
                slice.store(logits_gradient, chunk, vector, values);
            }
        }
    }
}

template <class T>
__global__ void cross_entropy_backward_plain_kernel(
    const __grid_constant__ CrossEntropyBackward params) {
    const int columns = params.columns;
    for (std::int64_t row = blockIdx.x; row < params.rows; row += gridDim.x) {
        const T* logits = static_cast<const T*>(params.logits) + row * columns;
        T* gradient = static_cast<T*>(params.logits_gradient) + row * columns;
        for (int column = threadIdx.x; column < columns; column += blockDim.x) {
            const float share = expf(device::to_float(logits[column]) - params.lse[row]);
            const float wanted = column == params.targets[row] ? 1.0f : 0.0f;
            gradient[column] = device::from_float<T>((share - wanted) * params.loss_gradient[row]);
        }
    }
}

}  // namespace

device::Enqueue prepare(const CrossEntropyBackward& params) {
    return prepare_rows<RowUse::kRowAlone>(
        "cross_entropy_backward", params,
        {{"logits", params.logits}, {"logits_gradient", params.logits_gradient}},
        [](auto variant) { return cross_entropy_backward_kernel<decltype(variant)>; });
}

device::Enqueue prepare_plain(const CrossEntropyBackward& params) {
    return prepare_plain_rows("cross_entropy_backward_plain", params, [](auto element) {
        return cross_entropy_backward_plain_kernel<decltype(element)>;
    });
}

}  // namespace norms
