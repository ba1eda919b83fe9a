// Hopper's warpgroup matrix instruction, one function an instruction and element type.
//
// D (64 x 256, fp32, in registers) += A (64 x K) * B (K x 256), both operands in shared memory, K
// contiguous, as 8-row by 16-byte core matrices without swizzle. K spans 32 bytes.
#pragma once

#include <cstdint>

#include "Kernels/device/ptx/warpgroup_operands.h"

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

__device__ __forceinline__ void wgmma_bf16(float (&d)[kAccumulators], uint64_t a, uint64_t b) {
    asm volatile("wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {" H2H_REGISTERS_128
                 "}, %128, %129, 1, 1, 1, 0, 0;"
                 : H2H_SUMS_128(d)
                 : "l"(a), "l"(b));
}

__device__ __forceinline__ void wgmma_f16(float (&d)[kAccumulators], uint64_t a, uint64_t b) {
    asm volatile("wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 {" H2H_REGISTERS_128
                 "}, %128, %129, 1, 1, 1, 0, 0;"
                 : H2H_SUMS_128(d)
                 : "l"(a), "l"(b));
}

__device__ __forceinline__ void wgmma_e4m3(float (&d)[kAccumulators], uint64_t a, uint64_t b) {
    asm volatile("wgmma.mma_async.sync.aligned.m64n256k32.f32.e4m3.e4m3 {" H2H_REGISTERS_128
                 "}, %128, %129, 1, 1, 1;"
                 : H2H_SUMS_128(d)
                 : "l"(a), "l"(b));
}

}  // namespace roofline
