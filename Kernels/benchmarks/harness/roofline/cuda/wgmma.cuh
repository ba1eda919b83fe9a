// Hopper's warpgroup matrix instruction, one function an instruction and element type.
//
// D (64 x 256, fp32, in registers) += A (64 x K) * B (K x 256), both operands in shared memory, K
// contiguous, as 8-row by 16-byte core matrices without swizzle. K spans 32 bytes.
#pragma once

#include <cstdint>

namespace roofline {

constexpr int kRows = 64;                              // of A, per warpgroup
constexpr int kColumns = 256;                          // of B
constexpr int kDepthBytes = 32;                        // of one instruction
constexpr int kAccumulators = kRows * kColumns / 128;  // per thread

// Shared-memory descriptor of an operand of `rows` rows. Core matrices that follow each other along
// the rows are 128 bytes apart; the two along K are a whole column of them apart.
__device__ __forceinline__ uint64_t wgmma_descriptor(const void* operand, int rows) {
    constexpr uint64_t kCoreBytes = 128;
    uint64_t address = __cvta_generic_to_shared(operand);
    uint64_t leading = rows / 8 * kCoreBytes;
    return (address >> 4) | (leading >> 4) << 16 | (kCoreBytes >> 4) << 32;
}

// Orders the registers and shared memory written before against the instructions that follow.
__device__ __forceinline__ void wgmma_fence() {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void wgmma_commit() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// Waits until every committed group is done; the accumulators may be read after it.
__device__ __forceinline__ void wgmma_wait() {
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
}

// clang-format off
#define ROOFLINE_WGMMA_REGISTERS \
  "%0, %1, %2, %3, %4, %5, %6, %7, " \
  "%8, %9, %10, %11, %12, %13, %14, %15, " \
  "%16, %17, %18, %19, %20, %21, %22, %23, " \
  "%24, %25, %26, %27, %28, %29, %30, %31, " \
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
#define ROOFLINE_WGMMA_OPERANDS(d) \
      "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), \
      "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), \
      "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), \
      "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), \
      "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), \
      "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), \
      "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), \
      "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), \
      "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), \
      "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), \
      "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), \
      "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), \
      "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), \
      "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), \
      "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), \
      "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63]), \
      "+f"(d[64]), "+f"(d[65]), "+f"(d[66]), "+f"(d[67]), \
      "+f"(d[68]), "+f"(d[69]), "+f"(d[70]), "+f"(d[71]), \
      "+f"(d[72]), "+f"(d[73]), "+f"(d[74]), "+f"(d[75]), \
      "+f"(d[76]), "+f"(d[77]), "+f"(d[78]), "+f"(d[79]), \
      "+f"(d[80]), "+f"(d[81]), "+f"(d[82]), "+f"(d[83]), \
      "+f"(d[84]), "+f"(d[85]), "+f"(d[86]), "+f"(d[87]), \
      "+f"(d[88]), "+f"(d[89]), "+f"(d[90]), "+f"(d[91]), \
      "+f"(d[92]), "+f"(d[93]), "+f"(d[94]), "+f"(d[95]), \
      "+f"(d[96]), "+f"(d[97]), "+f"(d[98]), "+f"(d[99]), \
      "+f"(d[100]), "+f"(d[101]), "+f"(d[102]), "+f"(d[103]), \
      "+f"(d[104]), "+f"(d[105]), "+f"(d[106]), "+f"(d[107]), \
      "+f"(d[108]), "+f"(d[109]), "+f"(d[110]), "+f"(d[111]), \
      "+f"(d[112]), "+f"(d[113]), "+f"(d[114]), "+f"(d[115]), \
      "+f"(d[116]), "+f"(d[117]), "+f"(d[118]), "+f"(d[119]), \
      "+f"(d[120]), "+f"(d[121]), "+f"(d[122]), "+f"(d[123]), \
      "+f"(d[124]), "+f"(d[125]), "+f"(d[126]), "+f"(d[127])
// clang-format on

__device__ __forceinline__ void wgmma_bf16(float (&d)[kAccumulators], uint64_t a, uint64_t b) {
    asm volatile("wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {" ROOFLINE_WGMMA_REGISTERS
                 "}, %128, %129, 1, 1, 1, 0, 0;"
                 : ROOFLINE_WGMMA_OPERANDS(d)
                 : "l"(a), "l"(b));
}

__device__ __forceinline__ void wgmma_f16(float (&d)[kAccumulators], uint64_t a, uint64_t b) {
    asm volatile("wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 {" ROOFLINE_WGMMA_REGISTERS
                 "}, %128, %129, 1, 1, 1, 0, 0;"
                 : ROOFLINE_WGMMA_OPERANDS(d)
                 : "l"(a), "l"(b));
}

__device__ __forceinline__ void wgmma_e4m3(float (&d)[kAccumulators], uint64_t a, uint64_t b) {
    asm volatile("wgmma.mma_async.sync.aligned.m64n256k32.f32.e4m3.e4m3 {" ROOFLINE_WGMMA_REGISTERS
                 "}, %128, %129, 1, 1, 1;"
                 : ROOFLINE_WGMMA_OPERANDS(d)
                 : "l"(a), "l"(b));
}

#undef ROOFLINE_WGMMA_REGISTERS
#undef ROOFLINE_WGMMA_OPERANDS

}  // namespace roofline
