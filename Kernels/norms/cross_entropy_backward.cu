#include "Kernels/norms/cross_entropy_backward.cuh"
#include "Kernels/norms/cross_entropy_backward.h"
#include "Kernels/norms/plain.cuh"

namespace norms {
namespace {

void check(const CrossEntropyBackward& params) {
    require_aligned("logits", params.logits);
    require_aligned("logits_gradient", params.logits_gradient);
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

Config config_of(const CrossEntropyBackward& params) {
    return choose(shape_of(params), {device::multiprocessors()}, RowUse::kOneRow);
}

void launch(const CrossEntropyBackward& params, const Config& config, cudaStream_t stream) {
    check(params);
    validate(config, shape_of(params), RowUse::kOneRow);
    const CrossEntropyBackwardArguments arguments = {
        params.logits,        params.targets,         params.lse,
        params.loss_gradient, params.logits_gradient, geometry_of(params, config)};
    dispatch(params.type, config, [&](auto variant) {
        using V = decltype(variant);
        device::launch("cross_entropy_backward",
                       cross_entropy_backward_kernel<typename V::T, V::kVectors, V::kAligned>,
                       launch_shape(config), stream, arguments);
    });
}

void launch(const CrossEntropyBackward& params, cudaStream_t stream) {
    launch(params, config_of(params), stream);
}

void launch_plain(const CrossEntropyBackward& params, cudaStream_t stream) {
    check(params);
    dispatch_type(params.type, [&](auto element) {
        device::launch("cross_entropy_backward_plain",
                       cross_entropy_backward_plain_kernel<decltype(element)>,
                       plain_shape(params.rows), stream, params);
    });
}

}  // namespace norms
