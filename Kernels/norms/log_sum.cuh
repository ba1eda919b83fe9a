// The sum of exponentials of a thread's share of a row. Everything is in units of log2: e^x is
// 2^(x * log2 e), which takes one multiply-add and one special-function instruction an element.
#pragma once

#include "Kernels/device/exponential.cuh"
#include "Kernels/norms/kernel.cuh"

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

// What `relative_exp` subtracts: the largest element in units of log2.
__device__ inline float log2_base(float largest) { return largest * device::kLog2E; }

__device__ inline float relative_exp(float value, float base) {
    return device::ptx::exp2_fast(fmaf(value, device::kLog2E, -base));
}

// Packets of one chunk; elements outside the row must be -infinity.
template <class T, int kVectors>
__device__ device::LogSum log_sum_of(uint4 (&packets)[kVectors]) {
    constexpr int kPer = device::kPerPacket<T>;
    const float base = log2_base(largest_of<T>(packets));
    if (base == -INFINITY) return device::LogSum::neutral();
    float sums[kChains] = {};
    device::stay_packed(packets);
#pragma unroll
    for (int vector = 0; vector < kVectors; ++vector) {
        float values[kPer];
        device::unpack<T>(packets[vector], values);
#pragma unroll
        for (int element = 0; element < kPer; ++element) {
            sums[element % kChains] += relative_exp(values[element], base);
        }
    }
    return {base, sum_of(sums).value};
}

}  // namespace norms
