#include <cuda_fp8.h>

#include <algorithm>
#include <cfloat>

#include "Kernels/quantize/check.h"
#include "Kernels/quantize/norm_quantize.cuh"

namespace quantize {
namespace {

NormQuantizeArguments arguments_of(const NormQuantize& params) {
    const Matrix& matrix = params.matrix;
    return {params.x,
            params.weight,
            static_cast<uint8_t*>(params.quantized),
            static_cast<float*>(params.scales),
            matrix.rows,
            matrix.columns,
            divide_up(matrix.columns, kGroup),
            params.epsilon};
}

template <class T, int kVectors>
device::Enqueue prepare_vectors(const NormQuantize& params, const RowConfig& config) {
    const device::Launch shape =
        device::blocks_of(divide_up(params.matrix.rows, config.rows_per_block),
                          dim3(config.threads_per_row, config.rows_per_block));
    return device::prepare("norm_quantize", norm_quantize_kernel<T, kVectors>, shape,
                           arguments_of(params), config.chunks);
}

template <class T>
device::Enqueue prepare_type(const NormQuantize& params) {
    const RowConfig config = choose_warps(params.matrix.columns / device::kPerPacket<T>);
    switch (config.vectors) {
        case 1:
            return prepare_vectors<T, 1>(params, config);
        case 2:
            return prepare_vectors<T, 2>(params, config);
        case 4:
            return prepare_vectors<T, 4>(params, config);
        case 8:
            return prepare_vectors<T, 8>(params, config);
    }
    device::refuse("no kernel for " + std::to_string(config.vectors) + " vectors");
}

constexpr int kPlainThreads = 128;

// Naive on purpose, one block per row: the reference for whole tensors.
template <class T>
__global__ void norm_quantize_plain_kernel(
    const __grid_constant__ NormQuantizeArguments arguments) {
    const int columns = arguments.columns;
    __shared__ float sums[kPlainThreads];
    for (std::int64_t row = blockIdx.x; row < arguments.rows; row += gridDim.x) {
        const T* x = static_cast<const T*>(arguments.x) + row * columns;
        float squares = 0.0f;
        for (int column = threadIdx.x; column < columns; column += blockDim.x) {
            const float value = device::to_float(x[column]);
            squares += value * value;
        }
        sums[threadIdx.x] = squares;
        __syncthreads();  // all sums are there
        float sum = 0.0f;
        for (int i = 0; i < kPlainThreads; ++i) sum += sums[i];
        __syncthreads();  // and have been read before those of the next row come
        const float rstd = 1.0f / sqrtf(sum / columns + arguments.epsilon);
        const auto norm = [&](int column) {
            const float weight = device::to_float(static_cast<const T*>(arguments.weight)[column]);
            return device::to_float(x[column]) * rstd * weight;
        };
        for (int group = threadIdx.x; group < arguments.across; group += blockDim.x) {
            const int end = min((group + 1) * kGroup, columns);
            float largest = 0.0f;
            bool finite = true;
            for (int column = group * kGroup; column < end; ++column) {
                finite = finite && isfinite(norm(column));
                largest = fmaxf(largest, fabsf(norm(column)));
            }
            const float scale =
                finite ? fmaxf(__fdiv_rn(largest, 448.0f), FLT_MIN) : __int_as_float(0x7fffffff);
            arguments.scales[row * arguments.across + group] = scale;
            const float inverse = __fdiv_rn(1.0f, scale);
            for (int column = group * kGroup; column < end; ++column) {
                arguments.quantized[row * columns + column] =
                    __nv_cvt_float_to_fp8(norm(column) * inverse, __NV_SATFINITE, __NV_E4M3);
            }
        }
    }
}

void check_addresses(const NormQuantize& params) {
    device::require_aligned("x", params.x);
    device::require_aligned("weight", params.weight);
    device::require_aligned("quantized", params.quantized);
    device::require_aligned("scales", params.scales);
}

}  // namespace

void check(const NormQuantize& params) {
    const Matrix& matrix = params.matrix;
    device::require(matrix.scaling == Scaling::Group,
                    "a norm is quantised with one fp32 scale per 128 elements");
    // Rows have whole packets, counted as for quantisation.
    check(matrix, divide_up(matrix.columns, kGroup) * std::int64_t{kGroup} / 4 * matrix.rows);
}

device::Enqueue prepare(const NormQuantize& params) {
    check(params);
    check_addresses(params);
    return device::dispatch_activations(
        params.matrix.dtype, [&](auto element) { return prepare_type<decltype(element)>(params); });
}

device::Enqueue prepare_plain(const NormQuantize& params) {
    check(params);
    check_addresses(params);
    constexpr std::int64_t kMostBlocks = 65535;
    return device::dispatch_activations(params.matrix.dtype, [&](auto element) {
        const std::int64_t blocks = std::min(params.matrix.rows, kMostBlocks);
        return device::prepare("norm_quantize_plain", norm_quantize_plain_kernel<decltype(element)>,
                               device::blocks_of(blocks, dim3(kPlainThreads)),
                               arguments_of(params));
    });
}

}  // namespace quantize
