// What both backward passes share: checks, workspace, and the plain kernels.
#include "Kernels/norms/norm_backward.h"
#include "Kernels/norms/norm_backward_launch.cuh"
#include "Kernels/norms/plain.cuh"

namespace norms {

void launch_rmsnorm_backward(const NormBackward& params, const Config& config, cudaStream_t stream);
void launch_layernorm_backward(const NormBackward& params, const Config& config,
                               cudaStream_t stream);

namespace {

// Rows of one partial sum of the plain kernels.
constexpr std::int64_t kPlainRows = 1024;

void check(const NormBackward& params, std::size_t needed_bytes) {
    require_aligned("x", params.x);
    require_aligned("weight", params.weight);
    require_aligned("out_gradient", params.out_gradient);
    require_aligned("x_gradient", params.x_gradient);
    require_aligned("workspace", params.workspace);
    require_weight_type(params.type, params.weight_type);
    if (params.norm == Norm::kLayer &&
        (params.mean == nullptr || params.bias_gradient == nullptr)) {
        throw std::invalid_argument("LayerNorm backward needs mean and bias_gradient");
    }
    if (params.workspace_bytes < needed_bytes) {
        throw std::invalid_argument("workspace has " + std::to_string(params.workspace_bytes) +
                                    " bytes; " + std::to_string(needed_bytes) + " are needed");
    }
}

std::size_t bytes_of_partials(const NormBackward& params, std::int64_t rows) {
    return sizeof(float) * static_cast<std::size_t>(sums_of(params)) *
           static_cast<std::size_t>(rows) * static_cast<std::size_t>(params.columns);
}

template <class T>
__global__ void norm_backward_plain_kernel(const __grid_constant__ NormBackward params) {
    const int columns = params.columns;
    for (std::int64_t row = blockIdx.x; row < params.rows; row += gridDim.x) {
        const T* x = static_cast<const T*>(params.x) + row * columns;
        const T* gradient = static_cast<const T*>(params.out_gradient) + row * columns;
        T* x_gradient = static_cast<T*>(params.x_gradient) + row * columns;
        const bool centred = params.norm == Norm::kLayer;
        const float rstd = params.rstd[row];
        const float mean = centred ? params.mean[row] : 0.0f;
        float products = 0.0f;
        float sum = 0.0f;
        for (int column = threadIdx.x; column < columns; column += blockDim.x) {
            const float normal = (device::to_float(x[column]) - mean) * rstd;
            const float scaled = device::to_float(gradient[column]) *
                                 plain_column<T>(params.weight, params.weight_type, column);
            products += normal * scaled;
            sum += scaled;
        }
        products = plain_sum(products) / columns;
        sum = centred ? plain_sum(sum) / columns : 0.0f;
        for (int column = threadIdx.x; column < columns; column += blockDim.x) {
            const float normal = (device::to_float(x[column]) - mean) * rstd;
            const float scaled = device::to_float(gradient[column]) *
                                 plain_column<T>(params.weight, params.weight_type, column);
            x_gradient[column] = device::from_float<T>(rstd * (scaled - sum - normal * products));
        }
    }
}

}  // namespace

Config config_of(const NormBackward& params) {
    return choose(shape_of(params), machine(), use_of(params));
}

std::size_t workspace_bytes(const NormBackward& params, const Config& config) {
    return bytes_of_partials(params, partial_rows(params, config));
}

std::size_t workspace_bytes(const NormBackward& params) {
    return workspace_bytes(params, config_of(params));
}

void launch(const NormBackward& params, const Config& config, cudaStream_t stream) {
    check(params, workspace_bytes(params, config));
    validate(config, shape_of(params), use_of(params));
    if (params.norm == Norm::kLayer) {
        launch_layernorm_backward(params, config, stream);
    } else {
        launch_rmsnorm_backward(params, config, stream);
    }
}

void launch(const NormBackward& params, cudaStream_t stream) {
    launch(params, config_of(params), stream);
}

std::size_t plain_workspace_bytes(const NormBackward& params) {
    return bytes_of_partials(params, (params.rows + kPlainRows - 1) / kPlainRows);
}

void launch_plain(const NormBackward& params, cudaStream_t stream) {
    check(params, plain_workspace_bytes(params));
    dispatch_type(params.type, [&](auto element) {
        using T = decltype(element);
        if (params.norm == Norm::kLayer) {
            launch_column_partials<T, true>(params, kPlainRows, stream);
        } else {
            launch_column_partials<T, false>(params, kPlainRows, stream);
        }
        launch_column_sums<T>(params, (params.rows + kPlainRows - 1) / kPlainRows, stream);
        device::launch("norm_backward_plain", norm_backward_plain_kernel<T>,
                       plain_shape(params.rows), stream, params);
    });
}

}  // namespace norms
