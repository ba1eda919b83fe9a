// Hopper's asynchronous warpgroup product: D (64 x N, fp32, in registers) = A * B + D or A * B.
//
// Both operands lie in shared memory with k contiguous, in rows of 128 bytes under the 128-byte
// swizzle that TMA writes; one instruction takes 32 bytes of k.
#pragma once

#include <cstdint>

#include "Kernels/gemm/element.cuh"

namespace gemm {

// Descriptor of an operand whose rows start at a multiple of 1024 bytes. Groups of eight rows are
// 1024 bytes apart; 32 bytes further along k are two more in its units of 16 bytes.
constexpr std::uint64_t kDescriptorUpper = std::uint64_t{1024 >> 4} << 32 | std::uint64_t{1} << 62;

__device__ __forceinline__ std::uint64_t operand_descriptor(const void* rows) {
    const std::uint64_t address = __cvta_generic_to_shared(rows);
    return (address & 0x3FFFF) >> 4 | std::uint64_t{1} << 16 | kDescriptorUpper;
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

// Keeps the compiler from moving accesses to the sums across this point.
template <int kCount>
__device__ __forceinline__ void pin(float (&sums)[kCount]) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) asm volatile("" : "+f"(sums[i])::"memory");
}

// clang-format off
#define GEMM_REGISTERS_32 \
  "%0, %1, %2, %3, %4, %5, %6, %7, " \
  "%8, %9, %10, %11, %12, %13, %14, %15, " \
  "%16, %17, %18, %19, %20, %21, %22, %23, " \
  "%24, %25, %26, %27, %28, %29, %30, %31"
#define GEMM_REGISTERS_64 \
  GEMM_REGISTERS_32 ", " \
  "%32, %33, %34, %35, %36, %37, %38, %39, " \
  "%40, %41, %42, %43, %44, %45, %46, %47, " \
  "%48, %49, %50, %51, %52, %53, %54, %55, " \
  "%56, %57, %58, %59, %60, %61, %62, %63"
#define GEMM_REGISTERS_80 \
  GEMM_REGISTERS_64 ", " \
  "%64, %65, %66, %67, %68, %69, %70, %71, " \
  "%72, %73, %74, %75, %76, %77, %78, %79"
#define GEMM_REGISTERS_96 \
  GEMM_REGISTERS_80 ", " \
  "%80, %81, %82, %83, %84, %85, %86, %87, " \
  "%88, %89, %90, %91, %92, %93, %94, %95"
#define GEMM_REGISTERS_128 \
  GEMM_REGISTERS_96 ", " \
  "%96, %97, %98, %99, %100, %101, %102, %103, " \
  "%104, %105, %106, %107, %108, %109, %110, %111, " \
  "%112, %113, %114, %115, %116, %117, %118, %119, " \
  "%120, %121, %122, %123, %124, %125, %126, %127"
#define GEMM_OPERANDS_32(d) \
  "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), \
  "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), \
  "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), \
  "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), \
  "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), \
  "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), \
  "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), \
  "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
#define GEMM_OPERANDS_64(d) \
  GEMM_OPERANDS_32(d), \
  "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), \
  "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), \
  "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), \
  "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), \
  "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), \
  "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), \
  "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), \
  "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
#define GEMM_OPERANDS_80(d) \
  GEMM_OPERANDS_64(d), \
  "+f"(d[64]), "+f"(d[65]), "+f"(d[66]), "+f"(d[67]), \
  "+f"(d[68]), "+f"(d[69]), "+f"(d[70]), "+f"(d[71]), \
  "+f"(d[72]), "+f"(d[73]), "+f"(d[74]), "+f"(d[75]), \
  "+f"(d[76]), "+f"(d[77]), "+f"(d[78]), "+f"(d[79])
#define GEMM_OPERANDS_96(d) \
  GEMM_OPERANDS_80(d), \
  "+f"(d[80]), "+f"(d[81]), "+f"(d[82]), "+f"(d[83]), \
  "+f"(d[84]), "+f"(d[85]), "+f"(d[86]), "+f"(d[87]), \
  "+f"(d[88]), "+f"(d[89]), "+f"(d[90]), "+f"(d[91]), \
  "+f"(d[92]), "+f"(d[93]), "+f"(d[94]), "+f"(d[95])
#define GEMM_OPERANDS_128(d) \
  GEMM_OPERANDS_96(d), \
  "+f"(d[96]), "+f"(d[97]), "+f"(d[98]), "+f"(d[99]), \
  "+f"(d[100]), "+f"(d[101]), "+f"(d[102]), "+f"(d[103]), \
  "+f"(d[104]), "+f"(d[105]), "+f"(d[106]), "+f"(d[107]), \
  "+f"(d[108]), "+f"(d[109]), "+f"(d[110]), "+f"(d[111]), \
  "+f"(d[112]), "+f"(d[113]), "+f"(d[114]), "+f"(d[115]), \
  "+f"(d[116]), "+f"(d[117]), "+f"(d[118]), "+f"(d[119]), \
  "+f"(d[120]), "+f"(d[121]), "+f"(d[122]), "+f"(d[123]), \
  "+f"(d[124]), "+f"(d[125]), "+f"(d[126]), "+f"(d[127])
// clang-format on

// `last` is what follows the scale of D: signs of A and B, and for 16-bit types their
// transposition.
#define GEMM_WGMMA(count, a_at, b_at, add_at, shape, types, last)                        \
    asm volatile("{ .reg .pred add; setp.ne.b32 add, %" add_at                           \
                 ", 0; wgmma.mma_async.sync.aligned." shape ".f32." types                \
                 " {" GEMM_REGISTERS_##count "}, %" a_at ", %" b_at ", add, " last "; }" \
                 : GEMM_OPERANDS_##count(d)                                              \
                 : "l"(a), "l"(b), "r"(add))

#define GEMM_WGMMA_TYPES(count, a_at, b_at, add_at, columns)                                    \
    if constexpr (kScaled<T>) {                                                                 \
        GEMM_WGMMA(count, a_at, b_at, add_at, "m64n" columns "k32", "e4m3.e4m3", "1, 1");       \
    } else if constexpr (std::is_same_v<T, __half>) {                                           \
        GEMM_WGMMA(count, a_at, b_at, add_at, "m64n" columns "k16", "f16.f16", "1, 1, 0, 0");   \
    } else {                                                                                    \
        GEMM_WGMMA(count, a_at, b_at, add_at, "m64n" columns "k16", "bf16.bf16", "1, 1, 0, 0"); \
    }

// One instruction: d = a * b + (add ? d : 0).
template <class T, int kColumns>
__device__ __forceinline__ void wgmma(float (&d)[kColumns / 2], std::uint64_t a, std::uint64_t b,
                                      int add) {
    static_assert(
        kColumns == 64 || kColumns == 128 || kColumns == 160 || kColumns == 192 || kColumns == 256,
        "no instruction of that width here");
    if constexpr (kColumns == 64) {
        GEMM_WGMMA_TYPES(32, "32", "33", "34", "64");
    } else if constexpr (kColumns == 128) {
        GEMM_WGMMA_TYPES(64, "64", "65", "66", "128");
    } else if constexpr (kColumns == 160) {
        GEMM_WGMMA_TYPES(80, "80", "81", "82", "160");
    } else if constexpr (kColumns == 192) {
        GEMM_WGMMA_TYPES(96, "96", "97", "98", "192");
    } else {
        GEMM_WGMMA_TYPES(128, "128", "129", "130", "256");
    }
}

#undef GEMM_WGMMA
#undef GEMM_WGMMA_TYPES

}  // namespace gemm
