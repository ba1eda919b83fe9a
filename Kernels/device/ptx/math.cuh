// Arithmetic of the special-function unit: one instruction per function.
#pragma once

namespace device::ptx {

// 2^x with a relative error of at most 2^-22; 0 where the result would be subnormal.
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

}  // namespace device::ptx
