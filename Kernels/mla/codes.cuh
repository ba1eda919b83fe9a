// FP8 (e4m3) cache elements as 16-bit elements of the queries' type. Exact: both types hold every
// e4m3 value.
#pragma once

#include <cstdint>

#include "Kernels/device/convert.cuh"
#include "Kernels/device/fp8.cuh"

namespace mla {

// The lower two codes of a word.
__device__ __forceinline__ std::uint32_t low_pair(std::uint32_t word, __half) {
    return device::ptx::e4m3_halves(static_cast<std::uint16_t>(word));
}
__device__ __forceinline__ std::uint32_t low_pair(std::uint32_t word, __nv_bfloat16 type) {
    const float2 both = device::e4m3_floats(static_cast<std::uint16_t>(word));
    return device::pack_pair(both.x, both.y, type);
}

template <class T>
__device__ __forceinline__ std::uint32_t high_pair(std::uint32_t word, T type) {
    return low_pair(word >> 16, type);
}

}  // namespace mla
