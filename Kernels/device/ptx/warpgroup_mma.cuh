// Hopper's warpgroup products: four warps, operands in shared memory, sums in registers; one
// instruction per function. sm_90a only: elsewhere the products trap.
//
// d[64 x 8 n] as d[n][4]: warp w of the group holds rows 16 w + lane / 4 and + 8, columns
// 8 n + 2 (lane % 4) and + 1.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

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
#define H2H_WGMMA_16 \
    "%0, %1, %2, %3, %4, %5, %6, %7, " \
    "%8, %9, %10, %11, %12, %13, %14, %15"
#define H2H_WGMMA_32 \
    H2H_WGMMA_16 ", " \
    "%16, %17, %18, %19, %20, %21, %22, %23, " \
    "%24, %25, %26, %27, %28, %29, %30, %31"
#define H2H_WGMMA_128 \
    H2H_WGMMA_32 ", " \
    "%32, %33, %34, %35, %36, %37, %38, %39, " \
    "%40, %41, %42, %43, %44, %45, %46, %47, " \
    "%48, %49, %50, %51, %52, %53, %54, %55, " \
    "%56, %57, %58, %59, %60, %61, %62, %63, " \
    "%64, %65, %66, %67, %68, %69, %70, %71, " \
    "%72, %73, %74, %75, %76, %77, %78, %79, " \
    "%80, %81, %82, %83, %84, %85, %86, %87, " \
    "%88, %89, %90, %91, %92, %93, %94, %95, " \
    "%96, %97, %98, %99, %100, %101, %102, %103, " \
    "%104, %105, %106, %107, %108, %109, %110, %111, " \
    "%112, %113, %114, %115, %116, %117, %118, %119, " \
    "%120, %121, %122, %123, %124, %125, %126, %127"
// The sums of eight columns, of 32, and so on, from the n-th eight on.
#define H2H_WGMMA_4_SUMS(d, n) "+f"(d[n][0]), "+f"(d[n][1]), "+f"(d[n][2]), "+f"(d[n][3])
#define H2H_WGMMA_16_SUMS(d, n) \
    H2H_WGMMA_4_SUMS(d, n), H2H_WGMMA_4_SUMS(d, n + 1), \
    H2H_WGMMA_4_SUMS(d, n + 2), H2H_WGMMA_4_SUMS(d, n + 3)
#define H2H_WGMMA_32_SUMS(d, n) H2H_WGMMA_16_SUMS(d, n), H2H_WGMMA_16_SUMS(d, n + 4)
#define H2H_WGMMA_128_SUMS(d) \
    H2H_WGMMA_32_SUMS(d, 0), H2H_WGMMA_32_SUMS(d, 8), \
    H2H_WGMMA_32_SUMS(d, 16), H2H_WGMMA_32_SUMS(d, 24)

// d (64 x 32, 64 x 64) = a * b, or += where `adds`; both depth major.
#define H2H_WGMMA_SCORES(type, name) \
    __device__ __forceinline__ void multiply_64x32(float (&d)[4][4], std::uint64_t a, \
                                                   std::uint64_t b, bool adds, type) { \
        H2H_WGMMA_ASM("{.reg .pred p; setp.ne.b32 p, %18, 0; " \
                      "wgmma.mma_async.sync.aligned.m64n32k16.f32." name "." name \
                      " {" H2H_WGMMA_16 "}, %16, %17, p, 1, 1, 0, 0;}" \
                      : H2H_WGMMA_16_SUMS(d, 0) \
                      : "l"(a), "l"(b), "r"(static_cast<int>(adds))); \
    } \
    __device__ __forceinline__ void multiply_64x64(float (&d)[8][4], std::uint64_t a, \
                                                   std::uint64_t b, bool adds, type) { \
        H2H_WGMMA_ASM("{.reg .pred p; setp.ne.b32 p, %34, 0; " \
                      "wgmma.mma_async.sync.aligned.m64n64k16.f32." name "." name \
                      " {" H2H_WGMMA_32 "}, %32, %33, p, 1, 1, 0, 0;}" \
                      : H2H_WGMMA_32_SUMS(d, 0) \
                      : "l"(a), "l"(b), "r"(static_cast<int>(adds))); \
    }
// d (64 x 256) += a * b, b width major; a depth major, or in registers, where 16 columns of the
// lane's rows are two of d's eights, packed.
#define H2H_WGMMA_SUMS(type, name) \
    __device__ __forceinline__ void multiply_add_64x256(float (&d)[32][4], std::uint64_t a, \
                                                        std::uint64_t b, type) { \
        H2H_WGMMA_ASM("wgmma.mma_async.sync.aligned.m64n256k16.f32." name "." name \
                      " {" H2H_WGMMA_128 "}, %128, %129, 1, 1, 1, 0, 1;" \
                      : H2H_WGMMA_128_SUMS(d) \
                      : "l"(a), "l"(b)); \
    } \
    __device__ __forceinline__ void multiply_add_64x256( \
        float (&d)[32][4], const std::uint32_t (&a)[4], std::uint64_t b, type) { \
        H2H_WGMMA_ASM("wgmma.mma_async.sync.aligned.m64n256k16.f32." name "." name \
                      " {" H2H_WGMMA_128 "}, {%128, %129, %130, %131}, %132, 1, 1, 1, 1;" \
                      : H2H_WGMMA_128_SUMS(d) \
                      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b)); \
    }
// clang-format on
H2H_WGMMA_SCORES(__nv_bfloat16, "bf16")
H2H_WGMMA_SCORES(__half, "f16")
H2H_WGMMA_SUMS(__nv_bfloat16, "bf16")
H2H_WGMMA_SUMS(__half, "f16")
#undef H2H_WGMMA_ASM
#undef H2H_WGMMA_16
#undef H2H_WGMMA_32
#undef H2H_WGMMA_128
#undef H2H_WGMMA_4_SUMS
#undef H2H_WGMMA_16_SUMS
#undef H2H_WGMMA_32_SUMS
#undef H2H_WGMMA_128_SUMS
#undef H2H_WGMMA_SCORES
#undef H2H_WGMMA_SUMS

}  // namespace device::ptx
