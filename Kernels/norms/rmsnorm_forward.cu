#include "Kernels/norms/plain.cuh"
#include "Kernels/norms/rmsnorm_forward.cuh"
#include "Kernels/norms/rmsnorm_forward.h"

namespace norms {
namespace {

// Rows a multiprocessor up to which more blocks on it, with fewer registers a thread, are worth 2
// to 3 % on an H200 also with four packets a thread; with many rows they cost up to 1 %.
constexpr int kFewRows = 16;

void check(const RmsNormForward& params) {
    require_aligned("x", params.x);
    require_aligned("weight", params.weight);
    require_aligned("out", params.out);
    require_weight_type(params.type, params.weight_type);
}

// Obvious on purpose: the reference that whole tensors are compared with.
template <class T>
__global__ void rmsnorm_forward_plain_kernel(const __grid_constant__ RmsNormForward params) {
    const int columns = params.columns;
    for (std::int64_t row = blockIdx.x; row < params.rows; row += gridDim.x) {
        const T* x = static_cast<const T*>(params.x) + row * columns;
        T* out = static_cast<T*>(params.out) + row * columns;
        float squares = 0.0f;
        for (int column = threadIdx.x; column < columns; column += blockDim.x) {
            const float value = device::to_float(x[column]);
            squares += value * value;
        }
        const float rstd = 1.0f / sqrtf(plain_sum(squares) / columns + params.epsilon);
        for (int column = threadIdx.x; column < columns; column += blockDim.x) {
            const float weight = plain_column<T>(params.weight, params.weight_type, column);
            out[column] = device::from_float<T>(device::to_float(x[column]) * rstd * weight);
        }
        if (params.rstd != nullptr && threadIdx.x == 0) params.rstd[row] = rstd;
    }
}

}  // namespace

Config config_of(const RmsNormForward& params) {
    return choose(shape_of(params), machine(), RowUse::kOneRow);
}

void launch(const RmsNormForward& params, const Config& config, cudaStream_t stream) {
    check(params);
    const RmsNormForwardArguments arguments = {params.x,
                                               params.weight,
                                               params.out,
                                               params.rstd,
                                               geometry_of(params, config),
                                               params.weight_type == ElementType::kF32,
                                               params.epsilon};
    launch_rows<RowUse::kOneRow>(
        "rmsnorm_forward", params, config, stream, arguments, [&](auto variant) {
            using V = decltype(variant);
            if constexpr (V::kAlone && V::kVectors == 2) {
                return rmsnorm_forward_lean_kernel<V>;
            } else {
                if constexpr (V::kAlone) {
                    const bool few = params.rows <= kFewRows * machine().multiprocessors;
                    if (few) return rmsnorm_forward_lean_kernel<V>;
                }
                return rmsnorm_forward_kernel<V>;
            }
        });
}

void launch(const RmsNormForward& params, cudaStream_t stream) {
    launch(params, config_of(params), stream);
}

void launch_plain(const RmsNormForward& params, cudaStream_t stream) {
    check(params);
    launch_plain_rows("rmsnorm_forward_plain", params, stream,
                      [](auto element) { return rmsnorm_forward_plain_kernel<decltype(element)>; });
}

}  // namespace norms
