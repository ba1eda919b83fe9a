#include "Kernels/norms/cross_entropy_fused.cuh"
#include "Kernels/norms/cross_entropy_fused.h"
#include "Kernels/norms/plain.cuh"

namespace norms {
namespace {

template <class T>
__global__ void cross_entropy_fused_plain_kernel(const __grid_constant__ CrossEntropyFused params) {
    const int columns = params.columns;
    for (std::int64_t row = blockIdx.x; row < params.rows; row += gridDim.x) {
        T* logits = static_cast<T*>(params.logits) + row * columns;
        float largest = -INFINITY;
        for (int column = threadIdx.x; column < columns; column += blockDim.x) {
            largest = fmaxf(largest, device::to_float(logits[column]));
        }
        largest = plain_max(largest);
        float sum = 0.0f;
        for (int column = threadIdx.x; column < columns; column += blockDim.x) {
            sum += expf(device::to_float(logits[column]) - largest);
        }
        const float lse = largest + logf(plain_sum(sum));
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

Config config_of(const CrossEntropyFused& params) {
    return choose(shape_of(params), machine(), RowUse::kExponentials);
}

void launch(const CrossEntropyFused& params, const Config& config, cudaStream_t stream) {
    require_aligned("logits", params.logits);
    const CrossEntropyFusedArguments arguments = {params.logits, params.targets, params.loss,
                                                  geometry_of(params, config)};
    launch_rows<RowUse::kExponentials>(
        "cross_entropy_fused", params, config, stream, arguments,
        [](auto variant) { return cross_entropy_fused_kernel<decltype(variant)>; });
}

void launch(const CrossEntropyFused& params, cudaStream_t stream) {
    launch(params, config_of(params), stream);
}

void launch_plain(const CrossEntropyFused& params, cudaStream_t stream) {
    require_aligned("logits", params.logits);
    launch_plain_rows("cross_entropy_fused_plain", params, stream, [](auto element) {
        return cross_entropy_fused_plain_kernel<decltype(element)>;
    });
}

}  // namespace norms
