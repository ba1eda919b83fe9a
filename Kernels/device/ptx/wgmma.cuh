// Hopper's warpgroup products: four warps, accumulators in registers, b and usually a in shared
// memory; one instruction per function. sm_90a only: elsewhere they trap.
//
// Sums d of 64 x 8 n elements are d[4 n]: warp w of the group holds rows 16 w + lane / 4 and + 8;
// its columns 8 i + 2 (lane % 4) and + 1 are d[4 i] and d[4 i + 1], and in the second row d[4 i +
// 2] and d[4 i + 3]. One instruction takes 32 bytes of the depth.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cstdint>
#include <type_traits>

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define H2H_WGMMA_ASM(...) asm volatile(__VA_ARGS__)
#else
#define H2H_WGMMA_ASM(...) __trap()
#endif

namespace device::ptx {

// Upper word of a depth-major operand's descriptor: eight rows are 1024 bytes, 128-byte swizzle.
constexpr std::uint64_t kSwizzledOperand = std::uint64_t{1024 >> 4} << 32 | std::uint64_t{1} << 62;

// An operand in rows of 128 bytes under the 128-byte swizzle: rows along M or N, depth contiguous.
// Steps along the depth are 32 bytes.
__device__ __forceinline__ std::uint64_t depth_major_operand(std::uint32_t shared) {
    return (shared & 0x3ffff) >> 4 | std::uint64_t{1} << 16 | kSwizzledOperand;
}

// The same memory with rows along the depth and N contiguous: 64 elements per row, the next 64 of N
// `block_bytes` further. Steps of 16 along the depth are 2048 bytes.
__device__ __forceinline__ std::uint64_t width_major_operand(std::uint32_t shared,
                                                             std::uint32_t block_bytes) {
    return (shared & 0x3ffff) >> 4 | static_cast<std::uint64_t>(block_bytes >> 4) << 16 |
           kSwizzledOperand;
}

// Depth contiguous without swizzle, as 8-row by 16-byte core matrices: neighbours along the rows
// are 128 bytes apart, the two along the depth a whole column of core matrices.
__device__ __forceinline__ std::uint64_t core_matrix_operand(std::uint32_t shared, int rows) {
    constexpr std::uint64_t kCoreBytes = 128;
    const std::uint64_t column_bytes = rows / 8 * kCoreBytes;
    return shared >> 4 | (column_bytes >> 4) << 16 | (kCoreBytes >> 4) << 32;
}

// Orders earlier writes to registers and shared memory before the products that follow.
__device__ __forceinline__ void wgmma_fence() {
    H2H_WGMMA_ASM("wgmma.fence.sync.aligned;" :: : "memory");
}

// Commits the group of the warpgroup's products since the last call.
__device__ __forceinline__ void wgmma_commit() {
    H2H_WGMMA_ASM("wgmma.commit_group.sync.aligned;" :: : "memory");
}

// Waits until at most `kPending` groups are in flight; the sums of the others may then be read.
template <int kPending>
__device__ __forceinline__ void wgmma_wait() {
    H2H_WGMMA_ASM("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}

// clang-format off
// The placeholders of the first n operands, and those operands: the elements of d.
#define H2H_REGISTERS_8 "%0, %1, %2, %3, %4, %5, %6, %7"
#define H2H_REGISTERS_16 H2H_REGISTERS_8 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define H2H_REGISTERS_24 H2H_REGISTERS_16 ", %16, %17, %18, %19, %20, %21, %22, %23"
#define H2H_REGISTERS_32 H2H_REGISTERS_24 ", %24, %25, %26, %27, %28, %29, %30, %31"
#define H2H_REGISTERS_40 H2H_REGISTERS_32 ", %32, %33, %34, %35, %36, %37, %38, %39"
#define H2H_REGISTERS_48 H2H_REGISTERS_32 ", " \
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
#define H2H_REGISTERS_56 H2H_REGISTERS_48 ", %48, %49, %50, %51, %52, %53, %54, %55"
#define H2H_REGISTERS_64 H2H_REGISTERS_56 ", %56, %57, %58, %59, %60, %61, %62, %63"
#define H2H_REGISTERS_72 H2H_REGISTERS_64 ", %64, %65, %66, %67, %68, %69, %70, %71"
#define H2H_REGISTERS_80 H2H_REGISTERS_64 ", " \
    "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79"
#define H2H_REGISTERS_88 H2H_REGISTERS_80 ", %80, %81, %82, %83, %84, %85, %86, %87"
#define H2H_REGISTERS_96 H2H_REGISTERS_88 ", %88, %89, %90, %91, %92, %93, %94, %95"
#define H2H_REGISTERS_104 H2H_REGISTERS_96 ", %96, %97, %98, %99, %100, %101, %102, %103"
#define H2H_REGISTERS_112 H2H_REGISTERS_104 ", %104, %105, %106, %107, %108, %109, %110, %111"
#define H2H_REGISTERS_128 H2H_REGISTERS_112 ", " \
    "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define H2H_SUMS_4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define H2H_SUMS_16(i) H2H_SUMS_4(i), H2H_SUMS_4(i + 4), H2H_SUMS_4(i + 8), H2H_SUMS_4(i + 12)
#define H2H_SUMS_8(i) H2H_SUMS_4(i), H2H_SUMS_4(i + 4)
#define H2H_SUMS_OF_8 H2H_SUMS_8(0)
#define H2H_SUMS_OF_16 H2H_SUMS_16(0)
#define H2H_SUMS_OF_24 H2H_SUMS_OF_16, H2H_SUMS_8(16)
#define H2H_SUMS_OF_32 H2H_SUMS_OF_16, H2H_SUMS_16(16)
#define H2H_SUMS_OF_40 H2H_SUMS_OF_32, H2H_SUMS_8(32)
#define H2H_SUMS_OF_48 H2H_SUMS_OF_32, H2H_SUMS_16(32)
#define H2H_SUMS_OF_56 H2H_SUMS_OF_48, H2H_SUMS_8(48)
#define H2H_SUMS_OF_64 H2H_SUMS_OF_48, H2H_SUMS_16(48)
#define H2H_SUMS_OF_72 H2H_SUMS_OF_64, H2H_SUMS_8(64)
#define H2H_SUMS_OF_80 H2H_SUMS_OF_64, H2H_SUMS_16(64)
#define H2H_SUMS_OF_88 H2H_SUMS_OF_80, H2H_SUMS_8(80)
#define H2H_SUMS_OF_96 H2H_SUMS_OF_80, H2H_SUMS_16(80)
#define H2H_SUMS_OF_104 H2H_SUMS_OF_96, H2H_SUMS_8(96)
#define H2H_SUMS_OF_112 H2H_SUMS_OF_96, H2H_SUMS_16(96)
#define H2H_SUMS_OF_128 H2H_SUMS_OF_112, H2H_SUMS_16(112)

// `count` sums of 64 x `columns`; the rest are the placeholders of the inputs. `majors` says which
// 16-bit operands are width major; FP8 ones cannot be.
#define H2H_WGMMA_SHARED(count, columns, types, majors, a_at, b_at, add_at) \
    H2H_WGMMA_ASM("{ .reg .pred add; setp.ne.b32 add, %" add_at ", 0; " \
                  "wgmma.mma_async.sync.aligned.m64n" columns types \
                  " {" H2H_REGISTERS_##count "}, %" a_at ", %" b_at ", add, 1, 1" majors "; }" \
                  : H2H_SUMS_OF_##count \
                  : "l"(a), "l"(b), "r"(add))
#define H2H_WGMMA_REGISTERS(count, columns, types, b_major, a0, a1, a2, a3, b_at) \
    H2H_WGMMA_ASM("wgmma.mma_async.sync.aligned.m64n" columns types \
                  " {" H2H_REGISTERS_##count "}, {%" a0 ", %" a1 ", %" a2 ", %" a3 "}, %" b_at \
                  ", 1, 1, 1, " b_major ";" \
                  : H2H_SUMS_OF_##count \
                  : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b))
#define H2H_WGMMA_DEPTH_MAJOR(count, columns, ...) \
    if constexpr (std::is_same_v<T, __nv_fp8_e4m3>) { \
        H2H_WGMMA_SHARED(count, columns, "k32.f32.e4m3.e4m3", "", __VA_ARGS__); \
    } else if constexpr (std::is_same_v<T, __half>) { \
        H2H_WGMMA_SHARED(count, columns, "k16.f32.f16.f16", ", 0, 0", __VA_ARGS__); \
    } else { \
        H2H_WGMMA_SHARED(count, columns, "k16.f32.bf16.bf16", ", 0, 0", __VA_ARGS__); \
    }
#define H2H_WGMMA_FROM_REGISTERS(count, columns, ...) \
    if constexpr (std::is_same_v<T, __half>) { \
        H2H_WGMMA_REGISTERS(count, columns, "k16.f32.f16.f16", __VA_ARGS__); \
    } else { \
        H2H_WGMMA_REGISTERS(count, columns, "k16.f32.bf16.bf16", __VA_ARGS__); \
    }
// clang-format on

// d = a * b + (add ? d : 0), both depth major. The instruction has two columns per sum of a lane.
template <class T, int kSums>
__device__ __forceinline__ void wgmma(float (&d)[kSums], std::uint64_t a, std::uint64_t b,
                                      int add) {
    constexpr bool kExists = kSums % 8 == 0 && kSums <= 128 && kSums != 120;
    static_assert(kExists, "no instruction of that width here");
    if constexpr (kSums == 8) {
        H2H_WGMMA_DEPTH_MAJOR(8, "16", "8", "9", "10");
    } else if constexpr (kSums == 16) {
        H2H_WGMMA_DEPTH_MAJOR(16, "32", "16", "17", "18");
    } else if constexpr (kSums == 24) {
        H2H_WGMMA_DEPTH_MAJOR(24, "48", "24", "25", "26");
    } else if constexpr (kSums == 32) {
        H2H_WGMMA_DEPTH_MAJOR(32, "64", "32", "33", "34");
    } else if constexpr (kSums == 40) {
        H2H_WGMMA_DEPTH_MAJOR(40, "80", "40", "41", "42");
    } else if constexpr (kSums == 48) {
        H2H_WGMMA_DEPTH_MAJOR(48, "96", "48", "49", "50");
    } else if constexpr (kSums == 56) {
        H2H_WGMMA_DEPTH_MAJOR(56, "112", "56", "57", "58");
    } else if constexpr (kSums == 64) {
        H2H_WGMMA_DEPTH_MAJOR(64, "128", "64", "65", "66");
    } else if constexpr (kSums == 72) {
        H2H_WGMMA_DEPTH_MAJOR(72, "144", "72", "73", "74");
    } else if constexpr (kSums == 80) {
        H2H_WGMMA_DEPTH_MAJOR(80, "160", "80", "81", "82");
    } else if constexpr (kSums == 88) {
        H2H_WGMMA_DEPTH_MAJOR(88, "176", "88", "89", "90");
    } else if constexpr (kSums == 96) {
        H2H_WGMMA_DEPTH_MAJOR(96, "192", "96", "97", "98");
    } else if constexpr (kSums == 104) {
        H2H_WGMMA_DEPTH_MAJOR(104, "208", "104", "105", "106");
    } else if constexpr (kSums == 112) {
        H2H_WGMMA_DEPTH_MAJOR(112, "224", "112", "113", "114");
    } else {
        H2H_WGMMA_DEPTH_MAJOR(128, "256", "128", "129", "130");
    }
}

// The same for a b that is width major, 256 columns of 16-bit elements.
template <class T>
__device__ __forceinline__ void wgmma_width_major(float (&d)[128], std::uint64_t a, std::uint64_t b,
                                                  int add) {
    if constexpr (std::is_same_v<T, __half>) {
        H2H_WGMMA_SHARED(128, "256", "k16.f32.f16.f16", ", 0, 1", "128", "129", "130");
    } else {
        H2H_WGMMA_SHARED(128, "256", "k16.f32.bf16.bf16", ", 0, 1", "128", "129", "130");
    }
}

// d += a * b, b depth major, 64 columns. The lane's four words of a are packed as d is: 16 columns
// of its rows.
template <class T>
__device__ __forceinline__ void wgmma(float (&d)[32], const std::uint32_t* a, std::uint64_t b) {
    H2H_WGMMA_FROM_REGISTERS(32, "64", "0", "32", "33", "34", "35", "36");
}

// The same with b width major.
template <class T, int kSums>
__device__ __forceinline__ void wgmma_width_major(float (&d)[kSums], const std::uint32_t* a,
                                                  std::uint64_t b) {
    static_assert(kSums == 32 || kSums == 64 || kSums == 128, "no instruction of that width here");
    if constexpr (kSums == 32) {
        H2H_WGMMA_FROM_REGISTERS(32, "64", "1", "32", "33", "34", "35", "36");
    } else if constexpr (kSums == 64) {
        H2H_WGMMA_FROM_REGISTERS(64, "128", "1", "64", "65", "66", "67", "68");
    } else {
        H2H_WGMMA_FROM_REGISTERS(128, "256", "1", "128", "129", "130", "131", "132");
    }
}

#undef H2H_WGMMA_ASM
#undef H2H_REGISTERS_8
#undef H2H_REGISTERS_16
#undef H2H_REGISTERS_24
#undef H2H_REGISTERS_32
#undef H2H_REGISTERS_40
#undef H2H_REGISTERS_48
#undef H2H_REGISTERS_56
#undef H2H_REGISTERS_64
#undef H2H_REGISTERS_72
#undef H2H_REGISTERS_80
#undef H2H_REGISTERS_88
#undef H2H_REGISTERS_96
#undef H2H_REGISTERS_104
#undef H2H_REGISTERS_112
#undef H2H_REGISTERS_128
#undef H2H_SUMS_4
#undef H2H_SUMS_8
#undef H2H_SUMS_16
#undef H2H_SUMS_OF_8
#undef H2H_SUMS_OF_16
#undef H2H_SUMS_OF_24
#undef H2H_SUMS_OF_32
#undef H2H_SUMS_OF_40
#undef H2H_SUMS_OF_48
#undef H2H_SUMS_OF_56
#undef H2H_SUMS_OF_64
#undef H2H_SUMS_OF_72
#undef H2H_SUMS_OF_80
#undef H2H_SUMS_OF_88
#undef H2H_SUMS_OF_96
#undef H2H_SUMS_OF_104
#undef H2H_SUMS_OF_112
#undef H2H_SUMS_OF_128
#undef H2H_WGMMA_SHARED
#undef H2H_WGMMA_REGISTERS
#undef H2H_WGMMA_DEPTH_MAJOR
#undef H2H_WGMMA_FROM_REGISTERS

}  // namespace device::ptx
