// The operand types: their values, their result types, and whether they have scales.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <type_traits>

namespace gemm {

template <class T>
constexpr bool kScaled = std::is_same_v<T, __nv_fp8_e4m3>;

template <class T>
using OutOf = std::conditional_t<std::is_same_v<T, __half>, __half, __nv_bfloat16>;

__device__ __forceinline__ float to_float(__nv_bfloat16 value) { return __bfloat162float(value); }
__device__ __forceinline__ float to_float(__half value) { return __half2float(value); }
__device__ __forceinline__ float to_float(__nv_fp8_e4m3 value) { return float(value); }

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
