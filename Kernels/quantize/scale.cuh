// The scale of a group of values, and values scaled by it: bit for bit as in quantize.h.
#pragma once

#include <cfloat>
#include <cstdint>

#include "Kernels/device/convert.cuh"
#include "Kernels/device/fp8.cuh"
#include "Kernels/device/ptx/memory.cuh"

namespace quantize {

// Magnitudes as unsigned integers: they order like the values, and a NaN is the largest.
template <class T>
struct Magnitude {
    // The largest magnitude of a packet.
    static __device__ uint32_t of(uint4 packet) {
        constexpr uint32_t kNoSigns = 0x7fff7fffu;
        const uint32_t pairs = __vmaxu2(__vmaxu2(packet.x & kNoSigns, packet.y & kNoSigns),
                                        __vmaxu2(packet.z & kNoSigns, packet.w & kNoSigns));
        return max(pairs & 0xffffu, pairs >> 16);
    }
    static __device__ float value(uint32_t magnitude) {
        const uint16_t bits = static_cast<uint16_t>(magnitude);
        T element;
        memcpy(&element, &bits, sizeof(element));
        return device::to_float(element);
    }
};

template <>
struct Magnitude<float> {
    static __device__ uint32_t of(uint4 packet) {
        constexpr uint32_t kNoSign = 0x7fffffffu;
        return max(max(packet.x & kNoSign, packet.y & kNoSign),
                   max(packet.z & kNoSign, packet.w & kNoSign));
    }
    static __device__ float value(uint32_t magnitude) { return __uint_as_float(magnitude); }
};

// `kMost` is the largest value of an element: 448 of e4m3, 6 of e2m1.
template <bool kUe8m0, int kMost = 448>
__device__ __forceinline__ float scale_of(float largest) {
    // False for a NaN too.
    if (!(largest <= FLT_MAX)) return __uint_as_float(0x7fffffffu);
    const float scale = fmaxf(__fdiv_rn(largest, float{kMost}), FLT_MIN);
    if constexpr (!kUe8m0) return scale;
    // Carries into the exponent unless the mantissa is zero.
    return __uint_as_float((__float_as_uint(scale) + 0x007fffffu) & 0x7f800000u);
}

template <bool kUe8m0>
__device__ __forceinline__ void store_scale(void* scales, std::int64_t index, float scale) {
    if constexpr (kUe8m0) {
        // The exponent's bits are the code; those of a NaN are 0xff.
        static_cast<uint8_t*>(scales)[index] =
            static_cast<uint8_t>(__float_as_uint(scale) >> 23 & 0xffu);
    } else {
        static_cast<float*>(scales)[index] = scale;
    }
}

// `quantized` points to the first element: 4 or 8 of them.
template <int kPer>
__device__ __forceinline__ void store_scaled_values(uint8_t* quantized, const float (&values)[kPer],
                                                    float inverse) {
    uint32_t words[kPer / 4];
#pragma unroll
    for (int word = 0; word < kPer / 4; ++word) {
        const uint32_t low = device::e4m3_pair(__fmul_rn(values[4 * word], inverse),
                                               __fmul_rn(values[4 * word + 1], inverse));
        const uint32_t high = device::e4m3_pair(__fmul_rn(values[4 * word + 2], inverse),
                                                __fmul_rn(values[4 * word + 3], inverse));
        words[word] = low | high << 16;
    }
    if constexpr (kPer == 8) {
        device::ptx::store_8(quantized, {words[0], words[1]});
    } else {
        *reinterpret_cast<uint32_t*>(quantized) = words[0];
    }
}

// The same of a packet.
template <class T>
__device__ __forceinline__ void store_scaled(uint8_t* quantized, uint4 packet, float inverse) {
    float values[device::kPerPacket<T>];
    device::unpack<T>(packet, values);
    store_scaled_values(quantized, values, inverse);
}

}  // namespace quantize
