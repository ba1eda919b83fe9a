// Hopper's asynchronous warpgroup product: 64 rows of sums in registers += A * B.
//
// Operands in shared memory lie in rows of 128 bytes under the 128-byte swizzle that TMA writes,
// each box of rows starting at a multiple of 1024 bytes. One instruction takes 16 elements of k.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

namespace attention {

constexpr int kBoxRowBytes = 128;

// Rows are m or n, k is contiguous. 32 bytes further along k are two more of the descriptor.
__device__ __forceinline__ std::uint64_t k_major_descriptor(std::uint32_t shared) {
    constexpr std::uint64_t kEightRows = 1024 >> 4;
    constexpr std::uint64_t kSwizzle128 = 1;
    return (shared & 0x3FFFF) >> 4 | std::uint64_t{1} << 16 | kEightRows << 32 | kSwizzle128 << 62;
}

// Rows are k, n is contiguous; 64 elements of n a box, the next 64 `box_bytes` further. 16 rows of
// k are 2048 bytes.
__device__ __forceinline__ std::uint64_t n_major_descriptor(std::uint32_t shared,
                                                            std::uint32_t box_bytes) {
    constexpr std::uint64_t kEightRows = 1024 >> 4;
    constexpr std::uint64_t kSwizzle128 = 1;
    return (shared & 0x3FFFF) >> 4 | std::uint64_t{box_bytes >> 4} << 16 | kEightRows << 32 |
           kSwizzle128 << 62;
}

// Orders registers and shared memory written before against the products that follow.
__device__ __forceinline__ void wgmma_fence() {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void wgmma_commit() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// Waits until at most kPending committed groups are under way.
template <int kPending>
__device__ __forceinline__ void wgmma_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}

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

// clang-format off
#define ATTENTION_REGISTERS_32 \
  "%0, %1, %2, %3, %4, %5, %6, %7, " \
  "%8, %9, %10, %11, %12, %13, %14, %15, " \
  "%16, %17, %18, %19, %20, %21, %22, %23, " \
  "%24, %25, %26, %27, %28, %29, %30, %31"
#define ATTENTION_REGISTERS_64 \
  "%0, %1, %2, %3, %4, %5, %6, %7, " \
  "%8, %9, %10, %11, %12, %13, %14, %15, " \
  "%16, %17, %18, %19, %20, %21, %22, %23, " \
  "%24, %25, %26, %27, %28, %29, %30, %31, " \
  "%32, %33, %34, %35, %36, %37, %38, %39, " \
  "%40, %41, %42, %43, %44, %45, %46, %47, " \
  "%48, %49, %50, %51, %52, %53, %54, %55, " \
  "%56, %57, %58, %59, %60, %61, %62, %63"
#define ATTENTION_SUMS_32 \
  "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3]), \
  "+f"(sums[4]), "+f"(sums[5]), "+f"(sums[6]), "+f"(sums[7]), \
  "+f"(sums[8]), "+f"(sums[9]), "+f"(sums[10]), "+f"(sums[11]), \
  "+f"(sums[12]), "+f"(sums[13]), "+f"(sums[14]), "+f"(sums[15]), \
  "+f"(sums[16]), "+f"(sums[17]), "+f"(sums[18]), "+f"(sums[19]), \
  "+f"(sums[20]), "+f"(sums[21]), "+f"(sums[22]), "+f"(sums[23]), \
  "+f"(sums[24]), "+f"(sums[25]), "+f"(sums[26]), "+f"(sums[27]), \
  "+f"(sums[28]), "+f"(sums[29]), "+f"(sums[30]), "+f"(sums[31])
#define ATTENTION_SUMS_64 \
  "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3]), \
  "+f"(sums[4]), "+f"(sums[5]), "+f"(sums[6]), "+f"(sums[7]), \
  "+f"(sums[8]), "+f"(sums[9]), "+f"(sums[10]), "+f"(sums[11]), \
  "+f"(sums[12]), "+f"(sums[13]), "+f"(sums[14]), "+f"(sums[15]), \
  "+f"(sums[16]), "+f"(sums[17]), "+f"(sums[18]), "+f"(sums[19]), \
  "+f"(sums[20]), "+f"(sums[21]), "+f"(sums[22]), "+f"(sums[23]), \
  "+f"(sums[24]), "+f"(sums[25]), "+f"(sums[26]), "+f"(sums[27]), \
  "+f"(sums[28]), "+f"(sums[29]), "+f"(sums[30]), "+f"(sums[31]), \
  "+f"(sums[32]), "+f"(sums[33]), "+f"(sums[34]), "+f"(sums[35]), \
  "+f"(sums[36]), "+f"(sums[37]), "+f"(sums[38]), "+f"(sums[39]), \
  "+f"(sums[40]), "+f"(sums[41]), "+f"(sums[42]), "+f"(sums[43]), \
  "+f"(sums[44]), "+f"(sums[45]), "+f"(sums[46]), "+f"(sums[47]), \
  "+f"(sums[48]), "+f"(sums[49]), "+f"(sums[50]), "+f"(sums[51]), \
  "+f"(sums[52]), "+f"(sums[53]), "+f"(sums[54]), "+f"(sums[55]), \
  "+f"(sums[56]), "+f"(sums[57]), "+f"(sums[58]), "+f"(sums[59]), \
  "+f"(sums[60]), "+f"(sums[61]), "+f"(sums[62]), "+f"(sums[63])
// clang-format on

// sums = A * B + (add ? sums : 0), both operands k-major in shared memory.
#define ATTENTION_WGMMA_SHARED(types)                                                   \
    asm volatile(                                                                       \
        "{ .reg .pred add; setp.ne.b32 add, %66, 0; "                                   \
        "wgmma.mma_async.sync.aligned.m64n128k16.f32" types " {" ATTENTION_REGISTERS_64 \
        "}, %64, %65, add, 1, 1, 0, 0; }"                                               \
        : ATTENTION_SUMS_64                                                             \
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

// sums += A * B, A in registers as a lane holds it, B n-major in shared memory.
#define ATTENTION_WGMMA_REGISTERS(count, columns, a0, a1, a2, a3, b_at, types)          \
    asm volatile("wgmma.mma_async.sync.aligned.m64n" columns "k16.f32" types            \
                 " {" ATTENTION_REGISTERS_##count "}, {%" a0 ", %" a1 ", %" a2 ", %" a3 \
                                                  "}, %" b_at ", 1, 1, 1, 1;"           \
                 : ATTENTION_SUMS_##count                                               \
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
