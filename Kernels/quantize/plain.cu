// Naive on purpose: the references for whole tensors.
#include <cuda_fp8.h>

#include <cfloat>
#include <cmath>
#include <cstdint>

#include "Kernels/device/convert.cuh"
#include "Kernels/device/scale_tiles.h"
#include "Kernels/quantize/check.h"
#include "Kernels/quantize/plain.cuh"

namespace quantize {
namespace {

constexpr int kThreads = 128;

struct Tiles {
    std::int64_t rows;
    std::int64_t columns;
    std::int64_t down;
    std::int64_t across;
};

Tiles tiles_of(const Matrix& matrix) {
    const std::int64_t rows = matrix.scaling == Scaling::Block ? kGroup : 1;
    const std::int64_t columns = matrix.scaling == Scaling::Row ? matrix.columns : kGroup;
    return {rows, columns, divide_up(matrix.rows, rows), divide_up(matrix.columns, columns)};
}

// One thread per group.
template <class T>
__global__ void quantize_plain_kernel(const __grid_constant__ Quantize params,
                                      const __grid_constant__ Tiles tiles) {
    const std::int64_t tile = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (tile >= tiles.down * tiles.across) return;
    const Matrix& matrix = params.matrix;
    const std::int64_t first_row = tile / tiles.across * tiles.rows;
    const std::int64_t first_column = tile % tiles.across * tiles.columns;
    const std::int64_t last_row = min(first_row + tiles.rows, matrix.rows);
    const std::int64_t last_column =
        min(first_column + tiles.columns, static_cast<std::int64_t>(matrix.columns));
    const T* x = static_cast<const T*>(params.x);
    float largest = 0.0f;
    bool finite = true;
    for (std::int64_t row = first_row; row < last_row; ++row) {
        for (std::int64_t column = first_column; column < last_column; ++column) {
            const float value = device::to_float(x[row * matrix.columns + column]);
            finite = finite && isfinite(value);
            largest = fmaxf(largest, fabsf(value));
        }
    }
    float scale = finite ? fmaxf(__fdiv_rn(largest, 448.0f), FLT_MIN) : NAN;
    if (matrix.scaling == Scaling::GroupUe8m0) {
        int exponent = 0;
        const float fraction = frexpf(scale, &exponent);
        // scale is fraction * 2^exponent with a fraction of 0.5 or more, below 1.
        if (finite) scale = ldexpf(1.0f, fraction == 0.5f ? exponent - 1 : exponent);
        static_cast<uint8_t*>(params.scales)[tile] =
            finite ? static_cast<uint8_t>(ilogbf(scale) + 127) : 0xff;
    } else {
        static_cast<float*>(params.scales)[tile] = scale;
    }
    const float inverse = __fdiv_rn(1.0f, scale);
    for (std::int64_t row = first_row; row < last_row; ++row) {
        for (std::int64_t column = first_column; column < last_column; ++column) {
            const std::int64_t index = row * matrix.columns + column;
            static_cast<uint8_t*>(params.quantized)[index] = __nv_cvt_float_to_fp8(
                device::to_float(x[index]) * inverse, __NV_SATFINITE, __NV_E4M3);
        }
    }
}

// One thread per element.
template <class T>
__global__ void dequantize_plain_kernel(const __grid_constant__ Dequantize params,
                                        const __grid_constant__ Tiles tiles) {
    const std::int64_t index = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    const Matrix& matrix = params.matrix;
    if (index >= matrix.rows * matrix.columns) return;
    const std::int64_t tile =
        index / matrix.columns / tiles.rows * tiles.across + index % matrix.columns / tiles.columns;
    const float scale = matrix.scaling == Scaling::GroupUe8m0
                            ? ldexpf(1.0f, static_cast<const uint8_t*>(params.scales)[tile] - 127)
                            : static_cast<const float*>(params.scales)[tile];
    const __half value =
        __nv_cvt_fp8_to_halfraw(static_cast<const uint8_t*>(params.quantized)[index], __NV_E4M3);
    static_cast<T*>(params.out)[index] = device::from_float<T>(device::to_float(value) * scale);
}

__device__ float e2m1_value(int code) {
    const float values[8] = {0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f};
    return code < 8 ? values[code] : -values[code - 8];
}

// One thread per scale, padding included.
template <class T>
__global__ void quantize_tiled_plain_kernel(const __grid_constant__ Quantize params,
                                            int scales_per_row, std::int64_t count) {
    const std::int64_t index = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (index >= count) return;
    const std::int64_t row = index / scales_per_row;
    const T* x = static_cast<const T*>(params.x) + row * params.matrix.columns;
    quantize_plain_group(params.matrix,
                         {params.quantized, params.scales, params.tensor_scale, scales_per_row},
                         row, static_cast<int>(index % scales_per_row),
                         [&](int column) { return device::to_float(x[column]); });
}

// One thread per element.
template <class T>
__global__ void dequantize_tiled_plain_kernel(const __grid_constant__ Dequantize params,
                                              int scales_per_row) {
    const std::int64_t index = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    const Matrix& matrix = params.matrix;
    if (index >= matrix.rows * matrix.columns) return;
    const std::int64_t row = index / matrix.columns;
    const int column = static_cast<int>(index % matrix.columns);
    const uint8_t code = static_cast<const uint8_t*>(params.scales)[device::scale_place(
        row, column / tiled_group(matrix.scaling), device::scale_tiles_across(scales_per_row))];
    const uint8_t* quantized = static_cast<const uint8_t*>(params.quantized);
    const float scale = matrix.scaling == Scaling::Nvfp4 ? e4m3_value(code) * *params.tensor_scale
                        : code == 0xff                   ? NAN
                                                         : ldexpf(1.0f, code - 127);
    const float value = is_paired(matrix.scaling)
                            ? e2m1_value(quantized[index / 2] >> (index % 2 * 4) & 15) * scale
                            : e4m3_value(quantized[index]) * scale;
    static_cast<T*>(params.out)[index] = device::from_float<T>(value);
}

}  // namespace

device::Enqueue prepare_plain(const Quantize& params) {
    check(params);
    if (is_tiled(params.matrix.scaling)) {
        const int scales = divide_up(params.matrix.columns, tiled_group(params.matrix.scaling));
        const int per_row = device::scale_tiles_across(scales) * device::kScaleTileColumns;
        const std::int64_t rows =
            divide_up(params.matrix.rows, device::kScaleTileRows) * device::kScaleTileRows;
        return device::dispatch_activations(params.matrix.dtype, [&](auto element) {
            return device::prepare(
                "quantize_tiled_plain", quantize_tiled_plain_kernel<decltype(element)>,
                device::cover(rows * per_row, kThreads), params, per_row, rows * per_row);
        });
    }
    const Tiles tiles = tiles_of(params.matrix);
    return device::dispatch_activations(params.matrix.dtype, [&](auto element) {
        return device::prepare("quantize_plain", quantize_plain_kernel<decltype(element)>,
                               device::cover(tiles.down * tiles.across, kThreads), params, tiles);
    });
}

device::Enqueue prepare_plain(const Dequantize& params) {
    check(params);
    if (is_tiled(params.matrix.scaling)) {
        const int scales = divide_up(params.matrix.columns, tiled_group(params.matrix.scaling));
        return device::dispatch_activations(params.matrix.dtype, [&](auto element) {
            return device::prepare(
                "dequantize_tiled_plain", dequantize_tiled_plain_kernel<decltype(element)>,
                device::cover(params.matrix.rows * params.matrix.columns, kThreads), params,
                scales);
        });
    }
    return device::dispatch_activations(params.matrix.dtype, [&](auto element) {
        return device::prepare("dequantize_plain", dequantize_plain_kernel<decltype(element)>,
                               device::cover(params.matrix.rows * params.matrix.columns, kThreads),
                               params, tiles_of(params.matrix));
    });
}

}  // namespace quantize
