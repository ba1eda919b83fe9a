#include "Kernels/norms/plain.cuh"
#include "Kernels/norms/softmax_forward.cuh"
#include "Kernels/norms/softmax_forward.h"

namespace norms {
namespace {

void check(const SoftmaxForward& params) {
    require_aligned("x", params.x);
    require_aligned("out", params.out);
}

template <class T>
__global__ void softmax_forward_plain_kernel(const __grid_constant__ SoftmaxForward params) {
    const int columns = params.columns;
    for (std::int64_t row = blockIdx.x; row < params.rows; row += gridDim.x) {
        const T* x = static_cast<const T*>(params.x) + row * columns;
        T* out = static_cast<T*>(params.out) + row * columns;
        float largest = -INFINITY;
        for (int column = threadIdx.x; column < columns; column += blockDim.x) {
            largest = fmaxf(largest, device::to_float(x[column]));
        }
        largest = plain_max(largest);
        float sum = 0.0f;
        for (int column = threadIdx.x; column < columns; column += blockDim.x) {
            sum += expf(device::to_float(x[column]) - largest);
        }
        sum = plain_sum(sum);
        for (int column = threadIdx.x; column < columns; column += blockDim.x) {
            const float value = expf(device::to_float(x[column]) - largest) / sum;
            out[column] = device::from_float<T>(value);
        }
    }
}

}  // namespace

Config config_of(const SoftmaxForward& params) {
    return choose(shape_of(params), machine(), RowUse::kExponentials);
}

void launch(const SoftmaxForward& params, const Config& config, cudaStream_t stream) {
    check(params);
    const SoftmaxForwardArguments arguments = {params.x, params.out, geometry_of(params, config)};
    launch_rows<RowUse::kExponentials>(
        "softmax_forward", params, config, stream, arguments,
        [](auto variant) { return softmax_forward_kernel<decltype(variant)>; });
}

void launch(const SoftmaxForward& params, cudaStream_t stream) {
    launch(params, config_of(params), stream);
}

void launch_plain(const SoftmaxForward& params, cudaStream_t stream) {
    check(params);
    launch_plain_rows("softmax_forward_plain", params, stream,
                      [](auto element) { return softmax_forward_plain_kernel<decltype(element)>; });
}

}  // namespace norms
