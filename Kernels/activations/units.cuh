// The activation functions and their derivatives in fp32, on the special-function unit (SFU).
//
// Absolute errors are below 2e-7 times max(1, |x|): with two SFU operations per element, memory can
// still be kept busy.
#pragma once

#include "Kernels/device/exponential.cuh"
#include "Kernels/device/ptx/math.cuh"

namespace activations {

struct ValueAndSlope {
    float value;
    float slope;
};

__device__ __forceinline__ float sigmoid(float x) {
    return device::ptx::reciprocal_fast(1.0f + device::exp_fast(-x));
}

struct Silu {
    static __device__ float value(float x) { return x * sigmoid(x); }
    static __device__ ValueAndSlope both(float x) {
        const float share = sigmoid(x);
        const float value = x * share;
        return {value, fmaf(value, 1.0f - share, share)};
    }
};

// 0.5 * (1 + tanh(z)) is sigmoid(2 z).
struct GeluTanh {
    static constexpr float kTwiceRoot = 1.5957691216057308f;  // 2 * sqrt(2 / pi)
    static constexpr float kCubic = 0.044715f;

    static __device__ float value(float x) { return x * share(x, x * x); }
    static __device__ ValueAndSlope both(float x) {
        const float square = x * x;
        const float share = GeluTanh::share(x, square);
        const float value = x * share;
        const float inner = kTwiceRoot * fmaf(3.0f * kCubic, square, 1.0f);
        return {value, fmaf(value * (1.0f - share), inner, share)};
    }

  private:
    static __device__ float share(float x, float square) {
        return sigmoid(x * fmaf(kTwiceRoot * kCubic, square, kTwiceRoot));
    }
};

// x times the normal CDF. Its tail is Abramowitz and Stegun's 7.1.26 for erfc(|x| / sqrt(2)) / 2,
// whose absolute error is at most 0.75e-7 and which shares exp(-x^2 / 2) with the density.
struct Gelu {
    static __device__ float value(float x) {
        float density;
        return x * distribution(x, density);
    }
    static __device__ ValueAndSlope both(float x) {
        float density;
        const float share = distribution(x, density);
        return {x * share, fmaf(x, density, share)};
    }

  private:
    static __device__ float distribution(float x, float& density) {
        constexpr float kRootHalf = 0.70710678118654752f;
        constexpr float kRootTwoPi = 0.39894228040143268f;  // 1 / sqrt(2 pi)
        const float bell = device::exp_fast(-0.5f * x * x);
        density = kRootTwoPi * bell;
        const float t = device::ptx::reciprocal_fast(fmaf(0.3275911f * kRootHalf, fabsf(x), 1.0f));
        float sum = 0.5f * 1.061405429f;
        sum = fmaf(sum, t, 0.5f * -1.453152027f);
        sum = fmaf(sum, t, 0.5f * 1.421413741f);
        sum = fmaf(sum, t, 0.5f * -0.284496736f);
        sum = fmaf(sum, t, 0.5f * 0.254829592f);
        const float tail = sum * t * bell;
        return x < 0.0f ? tail : 1.0f - tail;
    }
};

}  // namespace activations
