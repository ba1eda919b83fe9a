// Residual addition and RMSNorm in place:
//   residual[r, c] += x[r, c]            rounded to its type
//   x[r, c] = residual[r, c] * rstd[r] * weight[c]
// with rstd of the new residual. The arithmetic is fp32.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "Kernels/norms/config.h"
#include "Kernels/norms/element_type.h"

namespace norms {

// Tensors are dense, row major, 16-byte aligned; x and residual do not overlap.
struct FusedAddRmsNorm {
    void* x;             // [rows, columns]
    void* residual;      // [rows, columns]
    const void* weight;  // [columns]
    std::int64_t rows;
    int columns;
    ElementType type;         // x, residual
    ElementType weight_type;  // kF32 or `type`
    float epsilon;
};

Config config_of(const FusedAddRmsNorm& params);
void launch(const FusedAddRmsNorm& params, const Config& config, cudaStream_t stream);
void launch(const FusedAddRmsNorm& params, cudaStream_t stream);
void launch_plain(const FusedAddRmsNorm& params, cudaStream_t stream);

}  // namespace norms
