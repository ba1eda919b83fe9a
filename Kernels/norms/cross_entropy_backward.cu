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
    return choose(shape_of(params), machine(), RowUse::kRowAlone);
}

void launch(const CrossEntropyBackward& params, const Config& config, cudaStream_t stream) {
    check(params);
    const CrossEntropyBackwardArguments arguments = {
        params.logits,        params.targets,         params.lse,
        params.loss_gradient, params.logits_gradient, geometry_of(params, config)};
    launch_rows<RowUse::kRowAlone>(
        "cross_entropy_backward", params, config, stream, arguments,
        [](auto variant) { return cross_entropy_backward_kernel<decltype(variant)>; });
}

void launch(const CrossEntropyBackward& params, cudaStream_t stream) {
    launch(params, config_of(params), stream);
}

void launch_plain(const CrossEntropyBackward& params, cudaStream_t stream) {
    check(params);
    launch_plain_rows("cross_entropy_backward_plain", params, stream, [](auto element) {
        return cross_entropy_backward_plain_kernel<decltype(element)>;
    });
}

}  // namespace norms
