#include <cuda_fp8.h>

#include <algorithm>
#include <cfloat>

#include "Kernels/quantize/check.h"
#include "Kernels/quantize/norm_quantize.cuh"
#include "Kernels/quantize/plain.cuh"

namespace quantize {
namespace {

NormQuantizeArguments arguments_of(const NormQuantize& params) {
    const Matrix& matrix = params.matrix;
    const int across =
        is_tiled(matrix.scaling)
            ? device::scale_tiles_across(divide_up(matrix.columns, tiled_group(matrix.scaling)))
            : divide_up(matrix.columns, kGroup);
    return {params.x,
            params.weight,
            static_cast<uint8_t*>(params.quantized),
            params.scales,
            params.tensor_scale,
            matrix.rows,
            matrix.columns,
            across,
            params.epsilon};
}

// Rows that have scales: whole tiles of them.
std::int64_t rows_of_scales(const Matrix& matrix) {
    if (!is_tiled(matrix.scaling)) return matrix.rows;
    return divide_up(matrix.rows, kScaleTileRows) * kScaleTileRows;
}

template <class T, Scaling kScaling, int kVectors>
device::Enqueue prepare_vectors(const NormQuantize& params, const RowConfig& config) {
    const device::Launch shape =
        device::blocks_of(divide_up(rows_of_scales(params.matrix), config.rows_per_block),
                          dim3(config.threads_per_row, config.rows_per_block));
    return device::prepare("norm_quantize", norm_quantize_kernel<T, kScaling, kVectors>, shape,
                           arguments_of(params), config.chunks);
}

template <class T, Scaling kScaling>
device::Enqueue prepare_type(const NormQuantize& params) {
    const RowConfig config = choose_warps(params.matrix.columns / device::kPerPacket<T>);
    switch (config.vectors) {
        case 1:
            return prepare_vectors<T, kScaling, 1>(params, config);
        case 2:
            return prepare_vectors<T, kScaling, 2>(params, config);
        case 4:
            return prepare_vectors<T, kScaling, 4>(params, config);
        case 8:
            return prepare_vectors<T, kScaling, 8>(params, config);
    }
    device::refuse("no kernel for " + std::to_string(config.vectors) + " vectors");
}

constexpr int kPlainThreads = 128;

// Naive on purpose, one block per row: the reference for whole tensors.
template <class T>
__global__ void norm_quantize_plain_kernel(const __grid_constant__ NormQuantizeArguments arguments,
                                           const __grid_constant__ Matrix matrix,
                                           std::int64_t rows) {
    const int columns = arguments.columns;
    __shared__ double sums[kPlainThreads];
    for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
        const T* x = static_cast<const T*>(arguments.x) + row * columns;
        double squares = 0.0;
        for (int column = threadIdx.x; column < columns && row < matrix.rows;
             column += blockDim.x) {
            const double value = device::to_float(x[column]);
            squares += value * value;
        }
        sums[threadIdx.x] = squares;
        __syncthreads();  // all sums are there
        double sum = 0.0;
        for (int i = 0; i < kPlainThreads; ++i) sum += sums[i];
        __syncthreads();  // and have been read before those of the next row come
        const float rstd = static_cast<float>(1.0 / sqrt(sum / columns + arguments.epsilon));
        const auto norm = [&](int column) {
            const float weight = device::to_float(static_cast<const T*>(arguments.weight)[column]);
            return device::to_float(x[column]) * rstd * weight;
        };
        if (is_tiled(matrix.scaling)) {
            const int scales = arguments.across * kScaleTileColumns;
            for (int group = threadIdx.x; group < scales; group += blockDim.x) {
                quantize_plain_group(
                    matrix, {arguments.quantized, arguments.scales, arguments.tensor_scale, scales},
                    row, group, norm);
            }
            continue;
        }
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
            static_cast<float*>(arguments.scales)[row * arguments.across + group] = scale;
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
    if (params.matrix.scaling == Scaling::Nvfp4) {
        device::require_aligned("tensor_scale", params.tensor_scale);
    }
}

}  // namespace

void check(const NormQuantize& params) {
    const Matrix& matrix = params.matrix;
    device::require(matrix.scaling == Scaling::Group || matrix.scaling == Scaling::Mxfp8 ||
                        matrix.scaling == Scaling::Nvfp4,
                    "a norm is quantised to FP8 with one fp32 scale per 128 elements, to MXFP8 or "
                    "to NVFP4");
    // Rows have whole packets, counted as for quantisation.
    check(matrix,
          divide_up(matrix.columns, kGroup) * std::int64_t{kGroup} / 4 * rows_of_scales(matrix));
}

device::Enqueue prepare(const NormQuantize& params) {
    check(params);
    check_addresses(params);
    return device::dispatch_activations(params.matrix.dtype, [&](auto element) {
        using T = decltype(element);
        switch (params.matrix.scaling) {
            case Scaling::Mxfp8:
                return prepare_type<T, Scaling::Mxfp8>(params);
            case Scaling::Nvfp4:
                return prepare_type<T, Scaling::Nvfp4>(params);
            default:
                return prepare_type<T, Scaling::Group>(params);
        }
    });
}

device::Enqueue prepare_plain(const NormQuantize& params) {
    check(params);
    check_addresses(params);
    constexpr std::int64_t kMostBlocks = 65535;
    return device::dispatch_activations(params.matrix.dtype, [&](auto element) {
        const std::int64_t rows = rows_of_scales(params.matrix);
        const std::int64_t blocks = std::min(rows, kMostBlocks);
        return device::prepare("norm_quantize_plain", norm_quantize_plain_kernel<decltype(element)>,
                               device::blocks_of(blocks, dim3(kPlainThreads)), arguments_of(params),
                               params.matrix, rows);
    });
}

}  // namespace quantize
