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

// Whether this architecture converts to e2m1.
#if defined(__CUDA_ARCH_FEAT_SM100_ALL) || defined(__CUDA_ARCH_FEAT_SM103_ALL) || \
    defined(__CUDA_ARCH_FEAT_SM120_ALL)
#define H2H_CONVERTS_E2M1
constexpr bool kConvertsE2m1 = true;
#else
constexpr bool kConvertsE2m1 = false;
#endif

// Two e2m1 codes, `low` in the low 4 bits: to nearest even, saturating; NaN becomes +6. Traps where
// kConvertsE2m1 is false.
__device__ __forceinline__ uint32_t e2m1_pair(float low, float high) {
    uint32_t pair = 0;
#if defined(H2H_CONVERTS_E2M1)
    asm("{ .reg .b8 pair; cvt.rn.satfinite.e2m1x2.f32 pair, %1, %2; cvt.u32.u8 %0, pair; }"
        : "=r"(pair)
        : "f"(high), "f"(low));
#else
    __trap();
#endif
    return pair;
}
#undef H2H_CONVERTS_E2M1

}  // namespace device::ptx
