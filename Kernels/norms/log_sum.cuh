// The sum of exponentials of a thread's share of a row. Everything is in units of log2: e^x is
// 2^(x * log2 e), which takes one multiply-add and one special-function instruction an element.
#pragma once

#include "Kernels/device/exponential.cuh"
#include "Kernels/norms/rows.cuh"

namespace norms {

// The largest element of the packets.
template <class T, int kVectors>
__device__ float largest_of(const uint4 (&packets)[kVectors]) {
    if constexpr (sizeof(T) == 4) {
        float largest = -INFINITY;
#pragma unroll
        for (const uint4& packet : packets) {
            float values[4];
            device::unpack<T>(packet, values);
#pragma unroll
            for (const float value : values) largest = fmaxf(largest, value);
        }
        return largest;
    } else {
        // Two elements an instruction, without unpacking.
        uint32_t pair = packets[0].x;
#pragma unroll
        for (const uint4& packet : packets) {
            const uint32_t words[4] = {packet.x, packet.y, packet.z, packet.w};
#pragma unroll
            for (const uint32_t word : words) pair = device::max_pair(pair, word, T{});
        }
        const float2 both = device::unpack_pair(pair, T{});
        return fmaxf(both.x, both.y);
    }
}

__device__ inline float relative_exp(float value, float base) {
    return device::ptx::exp2_fast(fmaf(value, device::kLog2E, -base));
}

// Smaller than all differences that are not 0 as a power of two.
constexpr float kLowest = -3.402823466e38f;

// Exponentials of a thread's share of a row, relative to the largest element of its warp's.
template <class V>
struct Powers {
    float kept[V::kVectors][V::kPer];
};
struct NoPowers {};

// Packets of one chunk; elements outside the row must be -infinity.
template <class V, class Kept>
__device__ device::LogSum log_sum_of(uint4 (&packets)[V::kVectors], Kept& powers) {
    using T = typename V::T;
    float largest = largest_of<T>(packets);
    if constexpr (V::kAlone) largest = warp_max(largest);
    // In units of log2; finite also where all elements are -infinity.
    const float base = fmaxf(largest * device::kLog2E, kLowest);
    float sums[kChains] = {};
    device::stay_packed(packets);
#pragma unroll
    for (int vector = 0; vector < V::kVectors; ++vector) {
        float values[V::kPer];
        device::unpack<T>(packets[vector], values);
#pragma unroll
        for (int element = 0; element < V::kPer; ++element) {
            const float power = relative_exp(values[element], base);
            if constexpr (!std::is_same_v<Kept, NoPowers>) powers.kept[vector][element] = power;
            sums[element % kChains] += power;
        }
    }
    return {base, sum_of(sums).value};
}

}  // namespace norms
