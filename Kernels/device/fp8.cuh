// FP8 e4m3 in pairs: conversion to nearest even, saturating; NaN stays NaN.
#pragma once

#include <cuda_fp16.h>

#include <cstdint>

namespace device {

// `low` goes to the low byte.
__device__ __forceinline__ uint16_t e4m3_pair(float low, float high) {
    uint16_t pair;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(high), "f"(low));
    return pair;
}

// Exact: every e4m3 value is an fp16 value.
__device__ __forceinline__ float2 e4m3_floats(uint16_t pair) {
    uint32_t halves;
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(halves) : "h"(pair));
    __half2 both;
    memcpy(&both, &halves, sizeof(both));
    return __half22float2(both);
}

}  // namespace device
