// Grouped matrix products: out[r, c] = sum over i of a[r, i] * b[group of r, c, i].
//
// k is contiguous in both operands. FP8 operands have scales: one per 128 of k in each row of a,
// one per block of 128 columns by 128 of k in b. Accumulation is in fp32; FP8 sums over 128 of k
// are scaled and promoted to it. One rounding at the end.
//
// fp8_ue8m0 operands are the same with powers of two for scales, in tiles (device/scale_tiles.h)
// that the tensor cores read: of b, each row has the scale of its block.
//
// MXFP8 and MXFP4 operands have one scale per 32 of k in each row, NVFP4 ones per 16, in such tiles
// too. A matrix of scales has whole tiles: each group's b, and each group's room of a masked
// layout. The scales of NVFP4 are relative to `tensor_scale`.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "Kernels/gemm/config.h"

namespace gemm {

struct Gemm {
    const void* a;  // [rows, k]; masked: [groups, rows, k]
    const void* b;  // [groups, n, k]
    void* out;      // [rows, n]; masked: [groups, rows, n]
    // FP8: fp32 [k / 128, rows up to 4]; masked: [groups, k / 128, the same]. fp8_ue8m0, MXFP8 and
    // MXFP4: tiles of UE8M0; NVFP4: of e4m3.
    const void* a_scales;
    const void* b_scales;       // FP8: fp32 [groups, ceil(n / 128), k / 128]; else as those of a
    const float* tensor_scale;  // NVFP4: the product of both operands' scales
    // Contiguous: the group of each row, -1 for padding; groups start at multiples of 128 rows.
    // Masked: rows used in each group. Dense: null.
    const std::int32_t* index;
    Shape shape;
};

void launch(const Gemm& params, const Config& config, cudaStream_t stream);

// fp32 arithmetic on CUDA cores, nothing clever: the gate compares whole tensors with it.
void launch_plain(const Gemm& params, cudaStream_t stream);

// Throws if the parameters are not as described above.
void validate(const Gemm& params);

}  // namespace gemm
