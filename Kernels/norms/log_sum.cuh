// The sum of exponentials of a thread's share of a row. Everything is in base 2: e^x is 2^(x * log2
// e), which takes one FMA and one special-function instruction per element.
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
        // Two elements per instruction, without unpacking.
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

// A power of two smaller than any nonzero difference.
constexpr float kLowest = -3.402823466e38f;

// Exponentials of a thread's share of a row, relative to its warp's maximum.
template <class V>
struct Powers {
    float kept[V::kVectors][V::kPer];
};
struct NoPowers {};

// Rows of one chunk keep them in registers instead of computing them twice; beside the addresses of
// four packets of words there is no room.
template <class V>
constexpr bool kKeepsPowers = !V::kChunked && (V::kAligned || (V::kWords && V::kVectors == 2));
template <class V>
using KeptPowers = std::conditional_t<kKeepsPowers<V>, Powers<V>, NoPowers>;

// Packets of one chunk; elements outside the row must be -infinity.
template <class V, class Kept>
__device__ device::LogSum log_sum_of(uint4 (&packets)[V::kVectors], Kept& powers) {
    using T = typename V::T;
    float largest = largest_of<T>(packets);
    if constexpr (V::kAlone) largest = device::warp_max(largest);
    // In base 2; finite even if all elements are -infinity.
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
