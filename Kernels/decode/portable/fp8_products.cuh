// FP8 (e4m3) cache elements as fp16 operands of a warp's products.
//
// One packet of a row, 16 elements, covers one product's depth along the head dimension, but a lane
// gets four consecutive elements where fp16 operands have two and two. So the dimensions are
// permuted: a lane's words 0 and 2 of the queries hold elements 4 pair to 4 pair + 3 of a packet,
// as its keys do. For the values, a lane gets two dimensions of two tokens per word: the even
// dimensions of a packet become columns of one product, the odd ones of the next.
#pragma once

#include <cstdint>

#include "Kernels/decode/either_type.cuh"
#include "Kernels/device/convert.cuh"
#include "Kernels/device/ptx/math.cuh"

namespace decode::portable {

// The lower and upper two codes of a word.
__device__ __forceinline__ std::uint32_t low_halves(std::uint32_t word) {
    return device::ptx::e4m3_halves(static_cast<std::uint16_t>(word));
}
__device__ __forceinline__ std::uint32_t high_halves(std::uint32_t word) {
    return low_halves(word >> 16);
}

// From two dimensions of each of two tokens to two tokens of each of two dimensions.
__device__ __forceinline__ std::uint32_t dimensions_apart(std::uint32_t word) {
    return __byte_perm(word, 0, 0x3120);
}

// A row of queries, bf16 or fp16, as fp16 operands. A power of two scales the row's largest element
// to the upper end of fp16's range, so that bf16's wider range is lost only for elements below
// 2^-29 of it; returns the inverse scale. The four lanes of a row call it together.
template <int kSteps>
__device__ __forceinline__ float load_row_as_halves(std::uint32_t (&words)[kSteps][4], int half,
                                                    const std::uint32_t* from, bool is_bf16) {
    const int pair = threadIdx.x % 4;
    float largest = 0.0f;
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
        const uint2 four = __ldg(reinterpret_cast<const uint2*>(from) + step * 4 + pair);
        words[step][half] = four.x;
        words[step][half + 2] = four.y;
        const float2 low = unpack_pair(four.x, is_bf16), high = unpack_pair(four.y, is_bf16);
        largest = fmaxf(
            largest, fmaxf(fmaxf(fabsf(low.x), fabsf(low.y)), fmaxf(fabsf(high.x), fabsf(high.y))));
    }
    largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, 1));
    largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, 2));
    // To an exponent of 14; powers of two have exponent fields 1 to 254.
    const std::uint32_t exponent = __float_as_uint(largest) >> 23;
    const std::uint32_t up = min(127 + 14 + 127 - exponent, 254u);
    const float scale = __uint_as_float(up << 23);
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
#pragma unroll
        for (int word = half; word < 4; word += 2) {
            const float2 both = unpack_pair(words[step][word], is_bf16);
            words[step][word] = device::pack_pair(both.x * scale, both.y * scale, __half{});
        }
    }
    return __uint_as_float((254 - up) << 23);
}

}  // namespace decode::portable
