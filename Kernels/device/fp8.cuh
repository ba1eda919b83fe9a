// FP8 e4m3 in pairs: conversion to nearest even, saturating; NaN stays NaN. And UE8M0, the scales
// that are powers of two.
#pragma once

#include <cuda_fp16.h>

#include <cstdint>

#include "Kernels/device/ptx/math.cuh"

namespace device {

using ptx::e4m3_pair;

// Exact.
__device__ __forceinline__ float2 e4m3_floats(uint16_t pair) {
    const uint32_t halves = ptx::e4m3_halves(pair);
    __half2 both;
    memcpy(&both, &halves, sizeof(both));
    return __half22float2(both);
}

__device__ __forceinline__ float ue8m0_float(uint32_t code) {
    // 2^-127 is subnormal; 0xff is NaN.
    if (code == 0) return __uint_as_float(0x00400000u);
    return code == 0xffu ? __uint_as_float(0x7fffffffu) : __uint_as_float(code << 23);
}

}  // namespace device
