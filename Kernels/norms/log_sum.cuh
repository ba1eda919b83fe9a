// The largest logit and the sum of exponentials of a thread's share of a row.
#pragma once

#include "Kernels/norms/kernel.cuh"

namespace norms {

// Packets of one chunk; elements outside the row must be -infinity.
template <class T, int kVectors>
__device__ device::LogSum log_sum_of(uint4 (&packets)[kVectors]) {
    constexpr int kPer = device::kPerPacket<T>;
    float largest = -INFINITY;
#pragma unroll
    for (int vector = 0; vector < kVectors; ++vector) {
        float values[kPer];
        device::unpack<T>(packets[vector], values);
#pragma unroll
        for (float value : values) largest = fmaxf(largest, value);
    }
    if (largest == -INFINITY) return device::LogSum::neutral();
    float sum = 0.0f;
    device::stay_packed(packets);
#pragma unroll
    for (int vector = 0; vector < kVectors; ++vector) {
        float values[kPer];
        device::unpack<T>(packets[vector], values);
#pragma unroll
        for (float value : values) sum += device::exp_fast(value - largest);
    }
    return {largest, sum};
}

}  // namespace norms
