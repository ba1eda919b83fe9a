// Two singles per instruction, one instruction per function. sm_100a and sm_103a: elsewhere each is
// two instructions with the same results.
#pragma once

namespace device::ptx {

#if defined(__CUDA_ARCH_FEAT_SM100_ALL) || defined(__CUDA_ARCH_FEAT_SM103_ALL)
#define H2H_PACKED_SINGLES
#endif

// a * b + c, rounded once.
__device__ __forceinline__ float2 multiply_add_pair(float2 a, float2 b, float2 c) {
#if defined(H2H_PACKED_SINGLES)
    float2 result;
    asm("{ .reg .b64 a, b, c; mov.b64 a, {%2, %3}; mov.b64 b, {%4, %5}; mov.b64 c, {%6, %7};"
        " fma.rn.f32x2 a, a, b, c; mov.b64 {%0, %1}, a; }"
        : "=f"(result.x), "=f"(result.y)
        : "f"(a.x), "f"(a.y), "f"(b.x), "f"(b.y), "f"(c.x), "f"(c.y));
    return result;
#else
    return {fmaf(a.x, b.x, c.x), fmaf(a.y, b.y, c.y)};
#endif
}

__device__ __forceinline__ float2 add_pair(float2 a, float2 b) {
#if defined(H2H_PACKED_SINGLES)
    float2 result;
    asm("{ .reg .b64 a, b; mov.b64 a, {%2, %3}; mov.b64 b, {%4, %5};"
        " add.rn.f32x2 a, a, b; mov.b64 {%0, %1}, a; }"
        : "=f"(result.x), "=f"(result.y)
        : "f"(a.x), "f"(a.y), "f"(b.x), "f"(b.y));
    return result;
#else
    return {a.x + b.x, a.y + b.y};
#endif
}

__device__ __forceinline__ float2 multiply_pair(float2 a, float2 b) {
#if defined(H2H_PACKED_SINGLES)
    float2 result;
    asm("{ .reg .b64 a, b; mov.b64 a, {%2, %3}; mov.b64 b, {%4, %5};"
        " mul.rn.f32x2 a, a, b; mov.b64 {%0, %1}, a; }"
        : "=f"(result.x), "=f"(result.y)
        : "f"(a.x), "f"(a.y), "f"(b.x), "f"(b.y));
    return result;
#else
    return {a.x * b.x, a.y * b.y};
#endif
}

#undef H2H_PACKED_SINGLES

}  // namespace device::ptx
