#include "Kernels/norms/cross_entropy_forward.cuh"
#include "Kernels/norms/cross_entropy_forward.h"
#include "Kernels/norms/plain.cuh"

namespace norms {
namespace {

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
    return choose(shape_of(params), machine(), RowUse::kReadOnce);
}

void launch(const CrossEntropyForward& params, const Config& config, cudaStream_t stream) {
    require_aligned("logits", params.logits);
    const CrossEntropyForwardArguments arguments = {params.logits, params.targets, params.loss,
                                                    params.lse, geometry_of(params, config)};
    launch_rows<RowUse::kReadOnce>(
        "cross_entropy_forward", params, config, stream, arguments,
        [](auto variant) { return cross_entropy_forward_kernel<decltype(variant)>; });
}

void launch(const CrossEntropyForward& params, cudaStream_t stream) {
    launch(params, config_of(params), stream);
}

void launch_plain(const CrossEntropyForward& params, cudaStream_t stream) {
    launch_plain_rows("cross_entropy_forward_plain", params, stream, [](auto element) {
        return cross_entropy_forward_plain_kernel<decltype(element)>;
    });
}

}  // namespace norms
