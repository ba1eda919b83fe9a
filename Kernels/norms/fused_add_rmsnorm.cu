#include "Kernels/norms/fused_add_rmsnorm.cuh"
#include "Kernels/norms/fused_add_rmsnorm.h"
#include "Kernels/norms/plain.cuh"

namespace norms {
namespace {

void check(const FusedAddRmsNorm& params) {
    require_aligned("x", params.x);
    require_aligned("residual", params.residual);
    require_aligned("weight", params.weight);
    require_weight_type(params.type, params.weight_type);
}

template <class T>
__global__ void fused_add_rmsnorm_plain_kernel(const __grid_constant__ FusedAddRmsNorm params) {
    const int columns = params.columns;
    for (std::int64_t row = blockIdx.x; row < params.rows; row += gridDim.x) {
        T* x = static_cast<T*>(params.x) + row * columns;
        T* residual = static_cast<T*>(params.residual) + row * columns;
        float squares = 0.0f;
        for (int column = threadIdx.x; column < columns; column += blockDim.x) {
            const float sum = device::to_float(x[column]) + device::to_float(residual[column]);
            residual[column] = device::from_float<T>(sum);
            const float stored = device::to_float(residual[column]);
            squares += stored * stored;
        }
        const float rstd = 1.0f / sqrtf(plain_sum(squares) / columns + params.epsilon);
        for (int column = threadIdx.x; column < columns; column += blockDim.x) {
            const float weight = plain_column<T>(params.weight, params.weight_type, column);
            x[column] = device::from_float<T>(device::to_float(residual[column]) * rstd * weight);
        }
    }
}

}  // namespace

Config config_of(const FusedAddRmsNorm& params) {
    return choose(shape_of(params), machine(), RowUse::kInPlace);
}

void launch(const FusedAddRmsNorm& params, const Config& config, cudaStream_t stream) {
    check(params);
    const FusedAddRmsNormArguments arguments = {params.x,
                                                params.residual,
                                                params.weight,
                                                geometry_of(params, config),
                                                params.weight_type == ElementType::kF32,
                                                params.epsilon};
    launch_rows<RowUse::kInPlace>("fused_add_rmsnorm", params, config, stream, arguments,
                                  [](auto variant) {
                                      using V = decltype(variant);
                                      // 2 % for many rows of 4096 on an H200.
                                      if constexpr (V::kAlone && V::kVectors == 4) {
                                          return fused_add_rmsnorm_lean_kernel<V>;
                                      } else {
                                          return fused_add_rmsnorm_kernel<V>;
                                      }
                                  });
}

void launch(const FusedAddRmsNorm& params, cudaStream_t stream) {
    launch(params, config_of(params), stream);
}

void launch_plain(const FusedAddRmsNorm& params, cudaStream_t stream) {
    check(params);
    launch_plain_rows("fused_add_rmsnorm_plain", params, stream, [](auto element) {
        return fused_add_rmsnorm_plain_kernel<decltype(element)>;
    });
}

}  // namespace norms
