// Exponentials from the special-function unit, or without it.
#pragma once

#include "Kernels/device/ptx/math.cuh"
#include "Kernels/device/ptx/packed.cuh"

namespace device {

constexpr float kLog2E = 1.44269504088896340736f;
constexpr float kLn2 = 0.693147180559945309417f;

// Exactly 1 for 0. The relative error is about 2^-22 and grows with |x|, as that of x does.
__device__ __forceinline__ float exp_fast(float x) { return ptx::exp2_fast(x * kLog2E); }

// 2^x by a polynomial, for kernels that wait for the special-function unit. x is at most 127; 0
// from -127 downwards. The relative error is below 2^-18; NaN becomes the largest finite number.
__device__ __forceinline__ float2 exp2_by_polynomial(float2 x) {
    // Adding it leaves the nearest integer in the low bits.
    constexpr float kRound = 12582912.0f;
    // Minimax on [-0.5, 0.5] with 1 at 0, so that x <= -127 becomes 1 with an exponent of 0: 0.
    constexpr float kOne = 0.69312418678f, kTwo = 0.24024098579f, kThree = 0.05590648265f,
                    kFour = 0.00958287535f;
    // Not a maximum, which would make NaN as small.
    x = {x.x < -127.0f ? -127.0f : x.x, x.y < -127.0f ? -127.0f : x.y};
    const float2 rounded = ptx::add_pair(x, {kRound, kRound});
    const float2 whole = ptx::add_pair(rounded, {-kRound, -kRound});
    const float2 rest = ptx::multiply_add_pair(whole, {-1.0f, -1.0f}, x);
    float2 power = ptx::multiply_add_pair(rest, {kFour, kFour}, {kThree, kThree});
    power = ptx::multiply_add_pair(power, rest, {kTwo, kTwo});
    power = ptx::multiply_add_pair(power, rest, {kOne, kOne});
    power = ptx::multiply_add_pair(power, rest, {1.0f, 1.0f});
    const auto scale = [](float value, float exponent) {
        return __uint_as_float(__float_as_uint(value) + (__float_as_uint(exponent) << 23));
    };
    return {scale(power.x, rounded.x), scale(power.y, rounded.y)};
}

}  // namespace device
