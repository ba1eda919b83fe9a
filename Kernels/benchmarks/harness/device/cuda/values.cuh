// Element values on the device: the same random numbers and the same rounding as crate `numeric`.
//
// Every function here has a twin in numeric/random.rs or numeric/format.rs; a change on one side
// without the other breaks the test that compares all types bit for bit.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cstdint>

namespace harness_device {

// Codes of numeric::DType as they cross the bridge.
enum class DType : uint32_t { kF32 = 0, kF16, kBf16, kF8E4M3, kF8E8M0, kI32, kI64, kByte };

constexpr uint64_t kIncrement = 0x9E3779B97F4A7C15ull;  // splitmix64's, the golden ratio

// splitmix64's finaliser.
__device__ __forceinline__ uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}

// 32 random bits of element `index`; `key` is numeric::stream_key(seed, tensor).
__device__ __forceinline__ uint32_t random_bits(uint64_t key, uint64_t index) {
    return static_cast<uint32_t>(mix(key + index * kIncrement) >> 32);
}

// In [low, high]. Intrinsics, because a contracted multiply-add would round once instead of twice.
__device__ __forceinline__ float uniform(uint32_t bits, float low, float high) {
    float unit = __fmul_rn(__uint2float_rn(bits >> 8), 1.0f / 16777216.0f);
    return __fadd_rn(low, __fmul_rn(__fsub_rn(high, low), unit));
}

// An integer in [0, below).
__device__ __forceinline__ double index_below(uint32_t bits, uint32_t below) {
    return static_cast<uint32_t>((static_cast<uint64_t>(bits) * below) >> 32);
}

// One element type: its storage, rounding to it (nearest even) and widening from it. Floats are
// rounded directly, without going through double, whose conversions are slow on a GPU; kNonFinite
// has the bits that are all set in NaN and infinities, and in nothing else.
template <DType kType>
struct Element;

template <>
struct Element<DType::kF32> {
    using Storage = float;
    static constexpr uint64_t kNonFinite = 0x7F800000;
    static __device__ Storage encode(double value) { return __double2float_rn(value); }
    static __device__ Storage encode(float value) { return value; }
    static __device__ double decode(Storage stored) { return stored; }
};

template <>
struct Element<DType::kF16> {
    using Storage = __half;
    static constexpr uint64_t kNonFinite = 0x7C00;
    static __device__ Storage encode(double value) { return __double2half(value); }
    static __device__ Storage encode(float value) { return __float2half_rn(value); }
    static __device__ double decode(Storage stored) { return __half2float(stored); }
};

template <>
struct Element<DType::kBf16> {
    using Storage = __nv_bfloat16;
    static constexpr uint64_t kNonFinite = 0x7F80;
    static __device__ Storage encode(double value) { return __double2bfloat16(value); }
    static __device__ Storage encode(float value) { return __float2bfloat16_rn(value); }
    static __device__ double decode(Storage stored) { return __bfloat162float(stored); }
};

template <>
struct Element<DType::kF8E4M3> {
    using Storage = __nv_fp8_storage_t;
    static constexpr uint64_t kNonFinite = 0x7F;
    static __device__ Storage encode(double value) {
        return __nv_cvt_double_to_fp8(value, __NV_SATFINITE, __NV_E4M3);
    }
    static __device__ Storage encode(float value) {
        return __nv_cvt_float_to_fp8(value, __NV_SATFINITE, __NV_E4M3);
    }
    static __device__ double decode(Storage stored) {
        return __half2float(__half(__nv_cvt_fp8_to_halfraw(stored, __NV_E4M3)));
    }
};

// A power of two without sign, 2^(code - 127); 0xFF is NaN.
template <>
struct Element<DType::kF8E8M0> {
    using Storage = uint8_t;
    static constexpr uint64_t kNonFinite = 0xFF;
    static __device__ Storage encode(double value) {
        if (!(value >= 0.0)) return 0xFF;
        int64_t pattern = __double_as_longlong(value);
        int exponent = static_cast<int>((pattern >> 52) & 0x7FF) - 1023;
        int code = exponent + 127;
        if (code < 0) return 0;
        if (code >= 0xFE) return 0xFE;
        int64_t fraction = pattern & 0xFFFFFFFFFFFFFll;
        constexpr int64_t kHalf = 0x8000000000000ll;
        bool up = fraction > kHalf || (fraction == kHalf && code % 2 == 1);
        return static_cast<Storage>(code + (up ? 1 : 0));
    }
    static __device__ double decode(Storage stored) {
        if (stored == 0xFF) return __longlong_as_double(0x7FF8000000000000ll);
        return __longlong_as_double((static_cast<int64_t>(stored) - 127 + 1023) << 52);
    }
};

template <>
struct Element<DType::kI32> {
    using Storage = int32_t;
    static __device__ Storage encode(double value) { return __double2int_rn(value); }
    static __device__ double decode(Storage stored) { return stored; }
};

template <>
struct Element<DType::kI64> {
    using Storage = int64_t;
    static __device__ Storage encode(double value) { return __double2ll_rn(value); }
    static __device__ double decode(Storage stored) { return static_cast<double>(stored); }
};

// A code of 8 bits, saturating: two e2m1 elements.
template <>
struct Element<DType::kByte> {
    using Storage = uint8_t;
    static __device__ Storage encode(double value) {
        return static_cast<Storage>(min(max(__double2int_rn(value), 0), 255));
    }
    static __device__ double decode(Storage stored) { return stored; }
};

}  // namespace harness_device
