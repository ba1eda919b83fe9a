// FP4 e2m1 in pairs, the first in the low 4 bits: conversion to nearest even, saturating; a NaN,
// for which there is no code, becomes +6.
#pragma once

#include <cstdint>

#include "Kernels/device/ptx/math.cuh"

namespace device {

// One code by comparisons, where there is no instruction; every comparison holds for a NaN.
__device__ __forceinline__ uint32_t e2m1_code(float value) {
    const float magnitude = fabsf(value);
    const uint32_t code = !(magnitude <= 0.25f) + !(magnitude < 0.75f) + !(magnitude <= 1.25f) +
                          !(magnitude < 1.75f) + !(magnitude <= 2.5f) + !(magnitude < 3.5f) +
                          !(magnitude <= 5.0f);
    const uint32_t sign = __float_as_uint(value) >> 28 & 8u;
    return isnan(value) ? 7u : sign | code;
}

__device__ __forceinline__ uint32_t e2m1_pair(float low, float high) {
    if constexpr (ptx::kConvertsE2m1) {
        return ptx::e2m1_pair(low, high);
    } else {
        return e2m1_code(low) | e2m1_code(high) << 4;
    }
}

// Of the low 4 bits. Exact: the exponent and the mantissa in their places of an fp32, times the
// difference of the biases.
__device__ __forceinline__ float e2m1_float(uint32_t code) {
    const float scaled = __uint_as_float((code & 8u) << 28 | (code & 7u) << 22);
    return scaled * 0x1p126f;
}

}  // namespace device
