// 16-byte packets as runs of elements, and their conversion to and from fp32.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "Kernels/device/ptx/registers.cuh"

namespace device {

template <class T>
constexpr int kPerPacket = 16 / static_cast<int>(sizeof(T));

// Elements 2i and 2i+1 of a 16-bit type, as stored in one 32-bit word.
__device__ __forceinline__ float2 unpack_pair(uint32_t word, __nv_bfloat16) {
    // A bf16 is the upper half of an fp32.
    return {__uint_as_float(word << 16), __uint_as_float(word & 0xffff0000u)};
}
__device__ __forceinline__ float2 unpack_pair(uint32_t word, __half) {
    __half2 pair;
    memcpy(&pair, &word, sizeof(pair));
    return __half22float2(pair);
}
__device__ __forceinline__ uint32_t pack_pair(float low, float high, __nv_bfloat16) {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
    uint32_t word;
    memcpy(&word, &pair, sizeof(word));
    return word;
}
__device__ __forceinline__ uint32_t pack_pair(float low, float high, __half) {
    const __half2 pair = __floats2half2_rn(low, high);
    uint32_t word;
    memcpy(&word, &pair, sizeof(word));
    return word;
}

// The larger of each of two pairs of elements.
__device__ __forceinline__ uint32_t max_pair(uint32_t a, uint32_t b, __nv_bfloat16) {
    __nv_bfloat162 pairs[2];
    memcpy(&pairs[0], &a, sizeof(a));
    memcpy(&pairs[1], &b, sizeof(b));
    const __nv_bfloat162 larger = __hmax2(pairs[0], pairs[1]);
    memcpy(&a, &larger, sizeof(a));
    return a;
}
__device__ __forceinline__ uint32_t max_pair(uint32_t a, uint32_t b, __half) {
    __half2 pairs[2];
    memcpy(&pairs[0], &a, sizeof(a));
    memcpy(&pairs[1], &b, sizeof(b));
    const __half2 larger = __hmax2(pairs[0], pairs[1]);
    memcpy(&a, &larger, sizeof(a));
    return a;
}

__device__ __forceinline__ float to_float(float value) { return value; }
__device__ __forceinline__ float to_float(__nv_bfloat16 value) { return __bfloat162float(value); }
__device__ __forceinline__ float to_float(__half value) { return __half2float(value); }

template <class T>
__device__ __forceinline__ T from_float(float value);
template <>
__device__ __forceinline__ float from_float<float>(float value) {
    return value;
}
template <>
__device__ __forceinline__ __nv_bfloat16 from_float<__nv_bfloat16>(float value) {
    return __float2bfloat16_rn(value);
}
template <>
__device__ __forceinline__ __half from_float<__half>(float value) {
    return __float2half_rn(value);
}

template <class T>
__device__ __forceinline__ void unpack(uint4 packet, float (&values)[kPerPacket<T>]) {
    const uint32_t words[4] = {packet.x, packet.y, packet.z, packet.w};
#pragma unroll
    for (int word = 0; word < 4; ++word) {
        if constexpr (sizeof(T) == 4) {
            values[word] = __uint_as_float(words[word]);
        } else {
            const float2 pair = unpack_pair(words[word], T{});
            values[2 * word] = pair.x;
            values[2 * word + 1] = pair.y;
        }
    }
}

template <class T>
__device__ __forceinline__ uint4 pack(const float (&values)[kPerPacket<T>]) {
    uint32_t words[4];
#pragma unroll
    for (int word = 0; word < 4; ++word) {
        if constexpr (sizeof(T) == 4) {
            words[word] = __float_as_uint(values[word]);
        } else {
            words[word] = pack_pair(values[2 * word], values[2 * word + 1], T{});
        }
    }
    return {words[0], words[1], words[2], words[3]};
}

// Makes the packets opaque to the compiler, so that it unpacks them again at their next use instead
// of keeping fp32 copies of 16-bit elements in twice the registers.
template <int kCount>
__device__ __forceinline__ void stay_packed(uint4 (&packets)[kCount]) {
#pragma unroll
    for (uint4& packet : packets) ptx::hide(packet);
}

}  // namespace device
