// The last step of a norm's backward pass for libraries whose kernels leave partial weight
// gradients to torch's sum.
#pragma once

#include <cuda_runtime.h>

namespace column_sums {

enum class WeightType { kF32, kBf16 };

// out[c] = sum over rows r of partials[r][c]; rows are contiguous fp32.
struct ColumnSum {
    const float* partials;
    void* out;
};

// One sum, or two in one launch. Columns are a multiple of 4, pointers 16-byte
// aligned.
struct ColumnSums {
    ColumnSum sums[2];
    int sum_count;
    int rows;
    int columns;
    WeightType out_type;
};

void launch(const ColumnSums& params, cudaStream_t stream);

}  // namespace column_sums
