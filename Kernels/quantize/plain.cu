// Naive on purpose: the references for whole tensors.
#include <cuda_fp8.h>

#include <cfloat>
#include <cmath>
#include <cstdint>

#include "Kernels/device/convert.cuh"
#include "Kernels/device/scale_tiles.h"
#include "Kernels/quantize/check.h"

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

// e2m1: the nearest of all values, of two equally near the even one.
__device__ int nearest_e2m1(float value) {
    const float values[8] = {0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f};
    if (isnan(value)) return 7;
    const float magnitude = fminf(fabsf(value), 6.0f);
    int best = 0;
    for (int code = 1; code < 8; ++code) {
        const float distance = fabsf(values[code] - magnitude);
        const float least = fabsf(values[best] - magnitude);
        if (distance < least || (distance == least && code % 2 == 0)) best = code;
    }
    return signbit(value) ? best + 8 : best;
}

__device__ float e2m1_value(int code) {
    const float values[8] = {0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f};
    return code < 8 ? values[code] : -values[code - 8];
}

__device__ float e4m3_value(uint8_t code) {
    return device::to_float(__half(__nv_cvt_fp8_to_halfraw(code, __NV_E4M3)));
}

// One thread per scale, padding included.
template <class T>
__global__ void quantize_tiled_plain_kernel(const __grid_constant__ Quantize params,
                                            int scales_per_row, std::int64_t count) {
    const std::int64_t index = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (index >= count) return;
    const Matrix& matrix = params.matrix;
    const bool pairs = is_paired(matrix.scaling);
    const int group = tiled_group(matrix.scaling);
    const std::int64_t row = index / scales_per_row;
    const int scale_number = static_cast<int>(index % scales_per_row);
    uint8_t& code = static_cast<uint8_t*>(params.scales)[device::scale_place(
        row, scale_number, device::scale_tiles_across(scales_per_row))];
    const int first = scale_number * group;
    code = 0;
    if (row >= matrix.rows || first >= matrix.columns) return;
    const int last = min(first + group, matrix.columns);
    const T* x = static_cast<const T*>(params.x) + row * matrix.columns;
    float largest = 0.0f;
    bool finite = true;
    for (int column = first; column < last; ++column) {
        const float value = device::to_float(x[column]);
        finite = finite && isfinite(value);
        largest = fmaxf(largest, fabsf(value));
    }
    float inverse = NAN;
    if (matrix.scaling == Scaling::Nvfp4) {
        const float of_tensor = *params.tensor_scale;
        const float exact =
            finite ? __fdiv_rn(__fdiv_rn(largest, 6.0f), of_tensor) : __int_as_float(0x7fffffff);
        code = __nv_cvt_float_to_fp8(exact, __NV_SATFINITE, __NV_E4M3);
        const float scale = e4m3_value(code);
        inverse = scale == 0.0f ? 0.0f : __fdiv_rn(1.0f, __fmul_rn(scale, of_tensor));
    } else {
        int exponent = 0;
        const float fraction =
            frexpf(fmaxf(__fdiv_rn(largest, pairs ? 6.0f : 448.0f), FLT_MIN), &exponent);
        if (fraction == 0.5f) --exponent;
        code = finite ? static_cast<uint8_t>(exponent + 127) : 0xff;
        if (finite) inverse = ldexpf(1.0f, -exponent);
    }
    for (int column = first; column < last; ++column) {
        const float scaled = __fmul_rn(device::to_float(x[column]), inverse);
        const std::int64_t place = row * matrix.columns + column;
        uint8_t* out = static_cast<uint8_t*>(params.quantized);
        if (!pairs) {
            out[place] = __nv_cvt_float_to_fp8(scaled, __NV_SATFINITE, __NV_E4M3);
        } else if (place % 2 == 0) {
            out[place / 2] = static_cast<uint8_t>(nearest_e2m1(scaled));
        } else {
            out[place / 2] |= static_cast<uint8_t>(nearest_e2m1(scaled) << 4);
        }
    }
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
