#include "Kernels/norms/layernorm_forward.cuh"
#include "Kernels/norms/layernorm_forward.h"
#include "Kernels/norms/plain.cuh"

namespace norms {
namespace {

void check(const LayerNormForward& params) {
    require_aligned("x", params.x);
    require_aligned("weight", params.weight);
    require_aligned("bias", params.bias);
    require_aligned("out", params.out);
    require_weight_type(params.type, params.weight_type);
}

template <class T>
__global__ void layernorm_forward_plain_kernel(const __grid_constant__ LayerNormForward params) {
    const int columns = params.columns;
    for (std::int64_t row = blockIdx.x; row < params.rows; row += gridDim.x) {
        const T* x = static_cast<const T*>(params.x) + row * columns;
        T* out = static_cast<T*>(params.out) + row * columns;
        float sum = 0.0f;
        for (int column = threadIdx.x; column < columns; column += blockDim.x) {
            sum += device::to_float(x[column]);
        }
        const float mean = plain_sum(sum) / columns;
        float squares = 0.0f;
        for (int column = threadIdx.x; column < columns; column += blockDim.x) {
            const float distance = device::to_float(x[column]) - mean;
            squares += distance * distance;
        }
        const float rstd = 1.0f / sqrtf(plain_sum(squares) / columns + params.epsilon);
        for (int column = threadIdx.x; column < columns; column += blockDim.x) {
            const float weight = plain_column<T>(params.weight, params.weight_type, column);
            const float bias = plain_column<T>(params.bias, params.weight_type, column);
            const float normal = (device::to_float(x[column]) - mean) * rstd;
            out[column] = device::from_float<T>(normal * weight + bias);
        }
        if (threadIdx.x == 0) {
            if (params.mean != nullptr) params.mean[row] = mean;
            if (params.rstd != nullptr) params.rstd[row] = rstd;
        }
    }
}

}  // namespace

Config config_of(const LayerNormForward& params) {
    return choose(shape_of(params), machine(), RowUse::kCentredRow);
}

void launch(const LayerNormForward& params, const Config& config, cudaStream_t stream) {
    check(params);
    const LayerNormForwardArguments arguments = {params.x,
                                                 params.weight,
                                                 params.bias,
                                                 params.out,
                                                 params.mean,
                                                 params.rstd,
                                                 geometry_of(params, config),
                                                 params.weight_type == ElementType::kF32,
                                                 params.epsilon};
    launch_rows<RowUse::kCentredRow>(
        "layernorm_forward", params, config, stream, arguments,
        [](auto variant) { return layernorm_forward_kernel<decltype(variant)>; });
}

void launch(const LayerNormForward& params, cudaStream_t stream) {
    launch(params, config_of(params), stream);
}

void launch_plain(const LayerNormForward& params, cudaStream_t stream) {
    check(params);
    launch_plain_rows("layernorm_forward_plain", params, stream, [](auto element) {
        return layernorm_forward_plain_kernel<decltype(element)>;
    });
}

}  // namespace norms
