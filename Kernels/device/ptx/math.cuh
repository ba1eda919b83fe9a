// Special-function arithmetic and conversions: one instruction per function.
#pragma once

#include <cstdint>

namespace device::ptx {

// 2^x with a relative error of at most 2^-22; 0 if the result would be subnormal.
__device__ __forceinline__ float exp2_fast(float x) {
    float result;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
    return result;
}

// 1 / x with a relative error of at most 2^-23; 0 for infinity.
__device__ __forceinline__ float reciprocal_fast(float x) {
    float result;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
    return result;
}

// Two e4m3 codes, `low` in the low byte: to nearest even, saturating; NaN stays NaN.
__device__ __forceinline__ uint16_t e4m3_pair(float low, float high) {
    uint16_t pair;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(high), "f"(low));
    return pair;
}

// Two e4m3 codes as fp16 in the same order. Exact: every e4m3 value is an fp16 value.
__device__ __forceinline__ uint32_t e4m3_halves(uint16_t pair) {
    uint32_t halves;
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(halves) : "h"(pair));
    return halves;
}

}  // namespace device::ptx
