// Pairs of elements that are bf16 or fp16 by a flag: queries and output over an FP8 cache.
#pragma once

#include <cstdint>

#include "Kernels/device/convert.cuh"

namespace decode {

__device__ __forceinline__ float2 unpack_pair(std::uint32_t word, bool is_bf16) {
    return is_bf16 ? device::unpack_pair(word, __nv_bfloat16{})
                   : device::unpack_pair(word, __half{});
}
__device__ __forceinline__ std::uint32_t pack_pair(float low, float high, bool is_bf16) {
    return is_bf16 ? device::pack_pair(low, high, __nv_bfloat16{})
                   : device::pack_pair(low, high, __half{});
}

}  // namespace decode
