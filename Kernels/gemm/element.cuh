// The operand types: their values, their result types, and whether they have scales.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cstdint>
#include <type_traits>

#include "Kernels/device/dispatch.h"
#include "Kernels/device/fp4.cuh"
#include "Kernels/device/fp8.cuh"

namespace gemm {

// Operands whose scales tensor cores apply: e4m3 values with one per 128 or per 32, and pairs of
// e2m1 values with scales of either kind.
struct Fp8Ue8m0 {
    std::uint8_t code;
};
struct Mxfp8 {
    std::uint8_t code;
};
struct Nvfp4 {
    std::uint8_t pair;
};
struct Mxfp4 {
    std::uint8_t pair;
};

// Elements in memory are two values.
template <class T>
constexpr bool kPaired = std::is_same_v<T, Nvfp4> || std::is_same_v<T, Mxfp4>;

template <class T>
constexpr bool kBlockScaled = std::is_same_v<T, Fp8Ue8m0> || std::is_same_v<T, Mxfp8> || kPaired<T>;

// Values per element in memory.
template <class T>
constexpr int kPacking = kPaired<T> ? 2 : 1;

// Values of a row that share one of these scales.
template <class T>
constexpr int kScaleGroup = std::is_same_v<T, Fp8Ue8m0> ? 128
                            : std::is_same_v<T, Nvfp4>  ? 16
                                                        : 32;

// Whether they are relative to a scale of the tensors.
template <class T>
constexpr bool kTensorScaled = std::is_same_v<T, Nvfp4>;

template <class T>
constexpr bool kScaled = std::is_same_v<T, __nv_fp8_e4m3>;

template <class T>
using OutOf = std::conditional_t<std::is_same_v<T, __half>, __half, __nv_bfloat16>;

__device__ __forceinline__ float to_float(__nv_bfloat16 value) { return __bfloat162float(value); }
__device__ __forceinline__ float to_float(__half value) { return __half2float(value); }
__device__ __forceinline__ float to_float(__nv_fp8_e4m3 value) { return float(value); }

// A value of a tensor.
template <class T>
__device__ __forceinline__ float value_at(const T* tensor, std::int64_t index) {
    if constexpr (kBlockScaled<T> && !kPaired<T>) {
        return device::e4m3_floats(tensor[index].code).x;
    } else if constexpr (kPaired<T>) {
        return device::e2m1_float(tensor[index / 2].pair >> index % 2 * 4);
    } else {
        return to_float(tensor[index]);
    }
}

// The scale of a code.
template <class T>
__device__ __forceinline__ float scale_value(std::uint8_t code) {
    if constexpr (std::is_same_v<T, Nvfp4>) {
        return device::e4m3_floats(code & 0x7f).x;
    } else {
        return device::ue8m0_float(code);
    }
}

template <class Out>
__device__ __forceinline__ Out narrow(float value) {
    if constexpr (std::is_same_v<Out, __half>) {
        return __float2half_rn(value);
    } else {
        return __float2bfloat16_rn(value);
    }
}

// Two neighbours in a row as one word.
template <class Out>
__device__ __forceinline__ unsigned narrow_pair(float low, float high) {
    if constexpr (std::is_same_v<Out, __half>) {
        const __half2 pair = __floats2half2_rn(low, high);
        return reinterpret_cast<const unsigned&>(pair);
    } else {
        const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
        return reinterpret_cast<const unsigned&>(pair);
    }
}

}  // namespace gemm

template <>
constexpr device::Dtype device::kDtypeOf<gemm::Fp8Ue8m0> = device::Dtype::Fp8Ue8m0;
template <>
constexpr device::Dtype device::kDtypeOf<gemm::Mxfp8> = device::Dtype::Mxfp8;
template <>
constexpr device::Dtype device::kDtypeOf<gemm::Nvfp4> = device::Dtype::Nvfp4;
template <>
constexpr device::Dtype device::kDtypeOf<gemm::Mxfp4> = device::Dtype::Mxfp4;
