// Warp-level matrix products with fp32 sums, and operand moves between shared memory and registers:
// one instruction per function. Available since sm_80 unless noted.
//
// Operands, with `quad` = lane / 4 and `pair` = lane % 4, two elements per word:
//   a[16 x 16]  words 0..3: (row quad, columns 2 pair), (row quad + 8, same), then columns + 8
//   b[16 x 8]   words 0..1: (rows 2 pair, column quad), rows + 8
//   c[16 x 8]   floats 0..3: (row quad, columns 2 pair and + 1), (row quad + 8, same)
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cstdint>

namespace device::ptx {

// Four 8 x 8 matrices; lane i passes the address of row i % 8 of matrix i / 8.
__device__ __forceinline__ void load_matrices(uint32_t (&words)[4], uint32_t shared) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                 : "r"(shared)
                 : "memory");
}

// The same, each matrix transposed.
__device__ __forceinline__ void load_matrices_transposed(uint32_t (&words)[4], uint32_t shared) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                 : "r"(shared)
                 : "memory");
}

// Stores four 8 x 8 matrices; lane i passes the address of row i % 8 of matrix i / 8. Since sm_90.
__device__ __forceinline__ void store_matrices(uint32_t shared, uint32_t a, uint32_t b, uint32_t c,
                                               uint32_t d) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(shared),
                 "r"(a), "r"(b), "r"(c), "r"(d)
                 : "memory");
}

// The same, each matrix transposed: lane i passes the address of column i % 8 of matrix i / 8.
__device__ __forceinline__ void store_matrices_transposed(uint32_t shared, uint32_t a, uint32_t b,
                                                          uint32_t c, uint32_t d) {
    asm volatile(
        "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(shared),
        "r"(a), "r"(b), "r"(c), "r"(d)
        : "memory");
}

// c += a * b. FP8 operands have the layout of 16-bit ones byte for byte, so twice the depth.
#define H2H_MMA(type, shape_and_types)                                                  \
    __device__ __forceinline__ void multiply_add(float (&c)[4], const uint32_t (&a)[4], \
                                                 uint32_t b0, uint32_t b1, type) {      \
        asm volatile("mma.sync.aligned." shape_and_types                                \
                     " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
                     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])                   \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));   \
    }
H2H_MMA(__nv_bfloat16, "m16n8k16.row.col.f32.bf16.bf16.f32")
H2H_MMA(__half, "m16n8k16.row.col.f32.f16.f16.f32")
H2H_MMA(__nv_fp8_e4m3, "m16n8k32.row.col.f32.e4m3.e4m3.f32")
#undef H2H_MMA

}  // namespace device::ptx
