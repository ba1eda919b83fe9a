// Hopper's asynchronous warpgroup product: 64 rows of sums in registers += A * B.
//
// Operands in shared memory lie in rows of 128 bytes under the 128-byte swizzle that TMA writes,
// each box of rows starting at a multiple of 1024 bytes. One instruction takes 16 elements of k.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

#include "Kernels/device/ptx/warpgroup_operands.h"

namespace attention {

constexpr int kBoxRowBytes = 128;

// Keeps the compiler from moving accesses to registers that a product uses across this point.
template <int kCount>
__device__ __forceinline__ void pin(float (&sums)[kCount]) {
#pragma unroll
    for (int index = 0; index < kCount; ++index) asm volatile("" : "+f"(sums[index])::"memory");
}
template <int kCount>
__device__ __forceinline__ void pin(std::uint32_t (&words)[kCount]) {
#pragma unroll
    for (int index = 0; index < kCount; ++index) asm volatile("" : "+r"(words[index])::"memory");
}

// sums = A * B + (add ? sums : 0), both operands with k contiguous in shared memory.
#define ATTENTION_WGMMA_SHARED(types)                                             \
    asm volatile(                                                                 \
        "{ .reg .pred add; setp.ne.b32 add, %66, 0; "                             \
        "wgmma.mma_async.sync.aligned.m64n128k16.f32" types " {" H2H_REGISTERS_64 \
        "}, %64, %65, add, 1, 1, 0, 0; }"                                         \
        : H2H_SUMS_64(sums)                                                       \
        : "l"(a), "l"(b), "r"(add))

template <class T>
__device__ __forceinline__ void multiply_shared(float (&sums)[64], std::uint64_t a, std::uint64_t b,
                                                int add) {
    if constexpr (std::is_same_v<T, __half>) {
        ATTENTION_WGMMA_SHARED(".f16.f16");
    } else {
        ATTENTION_WGMMA_SHARED(".bf16.bf16");
    }
}

// sums += A * B, A in registers as a lane holds it, B with n contiguous in shared memory.
#define ATTENTION_WGMMA_REGISTERS(count, columns, a0, a1, a2, a3, b_at, types)                \
    asm volatile("wgmma.mma_async.sync.aligned.m64n" columns "k16.f32" types                  \
                 " {" H2H_REGISTERS_##count "}, {%" a0 ", %" a1 ", %" a2 ", %" a3 "}, %" b_at \
                                            ", 1, 1, 1, 1;"                                   \
                 : H2H_SUMS_##count(sums)                                                     \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b))

template <class T>
__device__ __forceinline__ void multiply_registers(float (&sums)[64], const std::uint32_t* a,
                                                   std::uint64_t b) {
    if constexpr (std::is_same_v<T, __half>) {
        ATTENTION_WGMMA_REGISTERS(64, "128", "64", "65", "66", "67", "68", ".f16.f16");
    } else {
        ATTENTION_WGMMA_REGISTERS(64, "128", "64", "65", "66", "67", "68", ".bf16.bf16");
    }
}
template <class T>
__device__ __forceinline__ void multiply_registers(float (&sums)[32], const std::uint32_t* a,
                                                   std::uint64_t b) {
    if constexpr (std::is_same_v<T, __half>) {
        ATTENTION_WGMMA_REGISTERS(32, "64", "32", "33", "34", "35", "36", ".f16.f16");
    } else {
        ATTENTION_WGMMA_REGISTERS(32, "64", "32", "33", "34", "35", "36", ".bf16.bf16");
    }
}

#undef ATTENTION_WGMMA_SHARED
#undef ATTENTION_WGMMA_REGISTERS

}  // namespace attention
