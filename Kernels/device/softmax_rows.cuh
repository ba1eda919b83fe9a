// Rows of scores as a warp's matrix product leaves them: four lanes share a row.
#pragma once

#include "Kernels/device/ptx/math.cuh"

namespace device {

__device__ __forceinline__ float largest_of_four_lanes(float value) {
    value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, 1));
    return fmaxf(value, __shfl_xor_sync(0xffffffffu, value, 2));
}

__device__ __forceinline__ float sum_of_four_lanes(float value) {
    value += __shfl_xor_sync(0xffffffffu, value, 1);
    return value + __shfl_xor_sync(0xffffffffu, value, 2);
}

// 2^(from - to), which rescales sums when a row's maximum grows; 0 for a row that has seen nothing,
// where both may be -infinity.
__device__ __forceinline__ float shrink(float from, float to) {
    return from == -INFINITY ? 0.0f : ptx::exp2_fast(from - to);
}

// Transposes four words of each of four neighbouring lanes: lane i's word j becomes lane j's word
// i.
__device__ __forceinline__ void transpose_quad(std::uint32_t (&words)[4]) {
#pragma unroll
    for (int bit = 1; bit <= 2; bit *= 2) {
        const bool upper = (threadIdx.x & bit) != 0;
#pragma unroll
        for (int low = 0; low < 4; ++low) {
            if ((low & bit) != 0) continue;
            const int high = low + bit;
            const std::uint32_t other =
                __shfl_xor_sync(0xffffffffu, upper ? words[low] : words[high], bit);
            words[low] = upper ? other : words[low];
            words[high] = upper ? words[high] : other;
        }
    }
}

}  // namespace device
