// FP8 e4m3 in pairs: conversion to nearest even, saturating; NaN stays NaN.
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

}  // namespace device
