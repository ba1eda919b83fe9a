#include "Kernels/norms/cross_entropy_forward.cuh"
#include "Kernels/norms/cross_entropy_forward.h"
#include "Kernels/norms/plain.cuh"

namespace norms {
namespace {

template <class T>
__global__ void cross_entropy_forward_plain_kernel(
    const __grid_constant__ CrossEntropyForward params) {
    const int columns = params.columns;
    for (std::int64_t row = blockIdx.x; row < params.rows; row += gridDim.x) {
        const T* logits = static_cast<const T*>(params.logits) + row * columns;
        float largest = -INFINITY;
        for (int column = threadIdx.x; column < columns; column += blockDim.x) {
            largest = fmaxf(largest, device::to_float(logits[column]));
        }
        largest = plain_max(largest);
        float sum = 0.0f;
        for (int column = threadIdx.x; column < columns; column += blockDim.x) {
            sum += expf(device::to_float(logits[column]) - largest);
        }
        sum = plain_sum(sum);
        if (threadIdx.x == 0) {
            params.lse[row] = largest + logf(sum);
            params.loss[row] = params.lse[row] - target_logit(logits, params.targets[row], columns);
        }
    }
}

}  // namespace

Config config_of(const CrossEntropyForward& params) {
    return choose(shape_of(params), {device::multiprocessors()}, RowUse::kOneRow);
}

void launch(const CrossEntropyForward& params, const Config& config, cudaStream_t stream) {
    require_aligned("logits", params.logits);
    validate(config, shape_of(params), RowUse::kOneRow);
    const CrossEntropyForwardArguments arguments = {params.logits, params.targets, params.loss,
                                                    params.lse, geometry_of(params, config)};
    dispatch(params.type, config, [&](auto variant) {
        using V = decltype(variant);
        device::launch("cross_entropy_forward",
                       cross_entropy_forward_kernel<typename V::T, V::kVectors, V::kAligned>,
                       launch_shape(config), stream, arguments);
    });
}

void launch(const CrossEntropyForward& params, cudaStream_t stream) {
    launch(params, config_of(params), stream);
}

void launch_plain(const CrossEntropyForward& params, cudaStream_t stream) {
    dispatch_type(params.type, [&](auto element) {
        device::launch("cross_entropy_forward_plain",
                       cross_entropy_forward_plain_kernel<decltype(element)>,
                       plain_shape(params.rows), stream, params);
    });
}

}  // namespace norms
