// Matrix products of groups of rows: out[r, c] = sum over i of a[r, i] * b[group of r, c, i].
//
// Both operands have k contiguous. FP8 operands have scales: of a for every 128 of k of a row, of b
// for every block of 128 columns by 128 of k. Sums are kept in fp32; FP8 sums of 128 of k are
// scaled and added to them. One rounding at the end.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "Kernels/gemm/config.h"

namespace gemm {

struct Gemm {
    const void* a;  // [rows, k]; masked: [groups, rows, k]
    const void* b;  // [groups, n, k]
    void* out;      // [rows, n]; masked: [groups, rows, n]
    const float*
        a_scales;  // [k / 128, rows up to 4]; masked: [groups, k / 128, the same]; FP8 only
    const float* b_scales;  // [groups, ceil(n / 128), k / 128]; FP8 only
    // Contiguous: the group of each row, -1 for padding; groups start at multiples of 128 rows.
    // Masked: used rows of each group. Dense: null.
    const std::int32_t* index;
    Shape shape;
};

void launch(const Gemm& params, const Config& config, cudaStream_t stream);

// fp32 arithmetic on fp32 units, nothing clever: what the gate compares whole tensors with.
void launch_plain(const Gemm& params, cudaStream_t stream);

// Throws where the parameters are not as described above.
void validate(const Gemm& params);

}  // namespace gemm
