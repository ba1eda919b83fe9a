// Softmax backward kernel: a team of threads holds both rows in registers, reduces, writes.
#include "Kernels/norms/plain.cuh"

namespace norms {
namespace {

template <class V>
__global__ void __launch_bounds__(kMaxThreads<V>, kMinBlocks<V>)
    softmax_backward_kernel(const __grid_constant__ Cut<SoftmaxBackward> params) {
    const Geometry& geometry = params.geometry;
    using T = typename V::T;

    __shared__ TeamStorage storage;
    typename V::Team team(storage, geometry.cluster_blocks);

    RowWalk<V> walk(geometry);
    RowSource<V, 2> source(geometry, {params.out, params.out_gradient}, walk);
    uint4 shares[V::kVectors];
    uint4 gradients[V::kVectors];
    for (; walk.more(); walk.next()) {
        const typename V::Slice slice(team, source.row(0, walk), geometry.columns, walk.active());

        float products[kChains] = {};
        source.wait();
        for (int chunk = 0; chunk <= walk.last_chunk; ++chunk) {
            source.load(0, walk, slice, chunk, shares);
            source.load(1, walk, slice, chunk, gradients);
#pragma unroll
            for (int vector = 0; vector < V::kVectors; ++vector) {
                float share[V::kPer];
                float gradient[V::kPer];
                device::unpack<T>(shares[vector], share);
                device::unpack<T>(gradients[vector], gradient);
#pragma unroll
                for (int element = 0; element < V::kPer; ++element) {
                    float& sum = products[element % kChains];
                    sum = fmaf(share[element], gradient[element], sum);
                }
            }
        }
        device::stay_packed(shares);
        device::stay_packed(gradients);
        const float projection = team.reduce(sum_of(products)).value;
        source.next();

        T* x_gradient = static_cast<T*>(params.x_gradient) + walk.row * geometry.columns;
        for (int chunk = walk.last_chunk; chunk >= 0; --chunk) {
            // The last chunk is still in registers.
            if (chunk != walk.last_chunk) {
                source.load(0, walk, slice, chunk, shares);
                source.load(1, walk, slice, chunk, gradients);
            }
#pragma unroll
            for (int vector = 0; vector < V::kVectors; ++vector) {
                float share[V::kPer];
                float gradient[V::kPer];
                device::unpack<T>(shares[vector], share);
                device::unpack<T>(gradients[vector], gradient);
#pragma unroll
                for (int element = 0; element < V::kPer; ++element) {
                    share[element] *= gradient[element] - projection;
                }
                slice.store(x_gradient, chunk, vector, share);
            }
        }
    }
}

template <class T>
__global__ void softmax_backward_plain_kernel(const __grid_constant__ SoftmaxBackward params) {
    const int columns = params.columns;
    for (std::int64_t row = blockIdx.x; row < params.rows; row += gridDim.x) {
        const T* out = static_cast<const T*>(params.out) + row * columns;
        const T* gradient = static_cast<const T*>(params.out_gradient) + row * columns;
        T* x_gradient = static_cast<T*>(params.x_gradient) + row * columns;
        float products = 0.0f;
        for (int column = threadIdx.x; column < columns; column += blockDim.x) {
            products += device::to_float(out[column]) * device::to_float(gradient[column]);
        }
        products = plain_sum(products);
        for (int column = threadIdx.x; column < columns; column += blockDim.x) {
            x_gradient[column] = device::from_float<T>(
                device::to_float(out[column]) * (device::to_float(gradient[column]) - products));
        }
    }
}

}  // namespace

device::Enqueue prepare(const SoftmaxBackward& params) {
    return prepare_rows<RowUse::kTwoRows>(
        "softmax_backward", params,
        {{"out", params.out},
         {"out_gradient", params.out_gradient},
         {"x_gradient", params.x_gradient}},
        [](auto variant) { return softmax_backward_kernel<decltype(variant)>; });
}

device::Enqueue prepare_plain(const SoftmaxBackward& params) {
    return prepare_plain_rows("softmax_backward_plain", params, [](auto element) {
        return softmax_backward_plain_kernel<decltype(element)>;
    });
}

}  // namespace norms
