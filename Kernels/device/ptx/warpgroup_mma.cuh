// Hopper's warpgroup products: four warps, operands in shared memory, sums in registers; one
// instruction per function. sm_90a only: elsewhere the products trap.
//
// d[64 x 8 n] as d[n][4]: warp w of the group holds rows 16 w + lane / 4 and + 8, columns
// 8 n + 2 (lane % 4) and + 1.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "Kernels/device/ptx/warpgroup_operands.h"

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define H2H_WGMMA_ASM(...) asm volatile(__VA_ARGS__)
#else
#define H2H_WGMMA_ASM(...) __trap()
#endif

namespace device::ptx {

// Orders ordinary accesses of this thread to shared memory before those of tensor cores.
__device__ __forceinline__ void fence_async_proxy() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// Operand whose rows of 128 bytes lie 128 bytes apart with a swizzle of 128 bytes: rows of the
// operand along M or N, depth contiguous. Steps of 16 along the depth are 32 bytes.
__device__ __forceinline__ std::uint64_t depth_major_operand(std::uint32_t shared) {
    constexpr std::uint64_t kEightRows = 1024 >> 4;
    constexpr std::uint64_t kSwizzle128 = std::uint64_t{1} << 62;
    return (shared & 0x3ffff) >> 4 | std::uint64_t{1} << 16 | kEightRows << 32 | kSwizzle128;
}

// The same memory with rows along the depth and N contiguous: 64 elements a row, the next 64 of N
// `block_bytes` further. Steps of 16 along the depth are 2048 bytes.
__device__ __forceinline__ std::uint64_t width_major_operand(std::uint32_t shared,
                                                             std::uint32_t block_bytes) {
    constexpr std::uint64_t kEightRows = 1024 >> 4;
    constexpr std::uint64_t kSwizzle128 = std::uint64_t{1} << 62;
    return (shared & 0x3ffff) >> 4 | static_cast<std::uint64_t>(block_bytes >> 4) << 16 |
           kEightRows << 32 | kSwizzle128;
}

// Orders registers written before against the products that follow.
__device__ __forceinline__ void warpgroup_fence() {
    H2H_WGMMA_ASM("wgmma.fence.sync.aligned;" :: : "memory");
}
__device__ __forceinline__ void warpgroup_commit() {
    H2H_WGMMA_ASM("wgmma.commit_group.sync.aligned;" :: : "memory");
}
// Waits until the products of at most `kPending` commits are under way; the sums of the others may
// be read after it.
template <int kPending = 0>
__device__ __forceinline__ void warpgroup_wait() {
    H2H_WGMMA_ASM("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}

// clang-format off
// The sums of eight columns, of 32, and so on, from the n-th eight on.
#define H2H_WGMMA_4_SUMS(d, n) "+f"(d[n][0]), "+f"(d[n][1]), "+f"(d[n][2]), "+f"(d[n][3])
#define H2H_WGMMA_16_SUMS(d, n) \
    H2H_WGMMA_4_SUMS(d, n), H2H_WGMMA_4_SUMS(d, n + 1), \
    H2H_WGMMA_4_SUMS(d, n + 2), H2H_WGMMA_4_SUMS(d, n + 3)
#define H2H_WGMMA_32_SUMS(d, n) H2H_WGMMA_16_SUMS(d, n), H2H_WGMMA_16_SUMS(d, n + 4)
#define H2H_WGMMA_128_SUMS(d) \
    H2H_WGMMA_32_SUMS(d, 0), H2H_WGMMA_32_SUMS(d, 8), \
    H2H_WGMMA_32_SUMS(d, 16), H2H_WGMMA_32_SUMS(d, 24)

// d (64 x 64) = a * b, or += where `adds`; both depth major.
#define H2H_WGMMA_SCORES(type, name) \
    __device__ __forceinline__ void multiply_64x64(float (&d)[8][4], std::uint64_t a, \
                                                   std::uint64_t b, bool adds, type) { \
        H2H_WGMMA_ASM("{.reg .pred p; setp.ne.b32 p, %34, 0; " \
                      "wgmma.mma_async.sync.aligned.m64n64k16.f32." name "." name \
                      " {" H2H_REGISTERS_32 "}, %32, %33, p, 1, 1, 0, 0;}" \
                      : H2H_WGMMA_32_SUMS(d, 0) \
                      : "l"(a), "l"(b), "r"(static_cast<int>(adds))); \
    }
// d (64 x 256) += a * b, b width major; a depth major, or in registers, where 16 columns of the
// lane's rows are two of d's eights, packed.
#define H2H_WGMMA_SUMS(type, name) \
    __device__ __forceinline__ void multiply_add_64x256(float (&d)[32][4], std::uint64_t a, \
                                                        std::uint64_t b, type) { \
        H2H_WGMMA_ASM("wgmma.mma_async.sync.aligned.m64n256k16.f32." name "." name \
                      " {" H2H_REGISTERS_128 "}, %128, %129, 1, 1, 1, 0, 1;" \
                      : H2H_WGMMA_128_SUMS(d) \
                      : "l"(a), "l"(b)); \
    } \
    __device__ __forceinline__ void multiply_add_64x256( \
        float (&d)[32][4], const std::uint32_t (&a)[4], std::uint64_t b, type) { \
        H2H_WGMMA_ASM("wgmma.mma_async.sync.aligned.m64n256k16.f32." name "." name \
                      " {" H2H_REGISTERS_128 "}, {%128, %129, %130, %131}, %132, 1, 1, 1, 1;" \
                      : H2H_WGMMA_128_SUMS(d) \
                      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b)); \
    }
// clang-format on
H2H_WGMMA_SCORES(__nv_bfloat16, "bf16")
H2H_WGMMA_SCORES(__half, "f16")
H2H_WGMMA_SUMS(__nv_bfloat16, "bf16")
H2H_WGMMA_SUMS(__half, "f16")
#undef H2H_WGMMA_ASM
#undef H2H_WGMMA_4_SUMS
#undef H2H_WGMMA_16_SUMS
#undef H2H_WGMMA_32_SUMS
#undef H2H_WGMMA_128_SUMS
#undef H2H_WGMMA_SCORES
#undef H2H_WGMMA_SUMS

}  // namespace device::ptx
