#include "Kernels/norms/plain.cuh"
#include "Kernels/norms/softmax_backward.cuh"
#include "Kernels/norms/softmax_backward.h"

namespace norms {
namespace {

void check(const SoftmaxBackward& params) {
    require_aligned("out", params.out);
    require_aligned("out_gradient", params.out_gradient);
    require_aligned("x_gradient", params.x_gradient);
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

Config config_of(const SoftmaxBackward& params) {
    return choose(shape_of(params), machine(), RowUse::kTwoRows);
}

void launch(const SoftmaxBackward& params, const Config& config, cudaStream_t stream) {
    check(params);
    const SoftmaxBackwardArguments arguments = {params.out, params.out_gradient, params.x_gradient,
                                                geometry_of(params, config)};
    launch_rows<RowUse::kTwoRows>(
        "softmax_backward", params, config, stream, arguments,
        [](auto variant) { return softmax_backward_kernel<decltype(variant)>; });
}

void launch(const SoftmaxBackward& params, cudaStream_t stream) {
    launch(params, config_of(params), stream);
}

void launch_plain(const SoftmaxBackward& params, cudaStream_t stream) {
    check(params);
    launch_plain_rows("softmax_backward_plain", params, stream, [](auto element) {
        return softmax_backward_plain_kernel<decltype(element)>;
    });
}

}  // namespace norms
