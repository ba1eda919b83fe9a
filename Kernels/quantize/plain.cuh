// One group of MXFP8, NVFP4 or MXFP4 by one thread: naive on purpose.
#pragma once

#include <cuda_fp8.h>

#include <cfloat>
#include <cmath>
#include <cstdint>

#include "Kernels/device/convert.cuh"
#include "Kernels/device/scale_tiles.h"
#include "Kernels/quantize/quantize.h"

namespace quantize {

// e2m1: the nearest of all values, of two equally near the even one.
inline __device__ int nearest_e2m1(float value) {
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

inline __device__ float e4m3_value(uint8_t code) {
    return device::to_float(__half(__nv_cvt_fp8_to_halfraw(code, __NV_E4M3)));
}

struct PlainTiled {
    void* quantized;
    void* scales;
    const float* tensor_scale;
    int scales_per_row;  // padding included
};

// Group `number` of a row, either of which may be padding; `value` of a column is quantised.
template <class Value>
__device__ void quantize_plain_group(const Matrix& matrix, const PlainTiled& to, std::int64_t row,
                                     int number, Value&& value) {
    const bool pairs = is_paired(matrix.scaling);
    const int group = tiled_group(matrix.scaling);
    uint8_t& code = static_cast<uint8_t*>(
        to.scales)[device::scale_place(row, number, device::scale_tiles_across(to.scales_per_row))];
    const int first = number * group;
    code = 0;
    if (row >= matrix.rows || first >= matrix.columns) return;
    const int last = min(first + group, matrix.columns);
    float largest = 0.0f;
    bool finite = true;
    for (int column = first; column < last; ++column) {
        finite = finite && isfinite(value(column));
        largest = fmaxf(largest, fabsf(value(column)));
    }
    float inverse = NAN;
    if (matrix.scaling == Scaling::Nvfp4) {
        const float of_tensor = *to.tensor_scale;
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
        const float scaled = __fmul_rn(value(column), inverse);
        const std::int64_t place = row * matrix.columns + column;
        uint8_t* out = static_cast<uint8_t*>(to.quantized);
        if (!pairs) {
            out[place] = __nv_cvt_float_to_fp8(scaled, __NV_SATFINITE, __NV_E4M3);
        } else if (place % 2 == 0) {
            out[place / 2] = static_cast<uint8_t>(nearest_e2m1(scaled));
        } else {
            out[place / 2] |= static_cast<uint8_t>(nearest_e2m1(scaled) << 4);
        }
    }
}

}  // namespace quantize
