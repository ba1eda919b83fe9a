// RMSNorm forward: out[r, c] = x[r, c] * rstd[r] * weight[c],
// rstd[r] = 1 / sqrt(mean_c(x[r, c]^2) + epsilon). Arithmetic in fp32, one rounding at the end.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "Kernels/norms/config.h"
#include "Kernels/norms/element_type.h"

namespace norms {

// Tensors are dense, row major, 16-byte aligned; x and out may be the same.
struct RmsNormForward {
    const void* x;       // [rows, columns]
    const void* weight;  // [columns]
    void* out;           // [rows, columns]
    float* rstd;         // [rows], or null
    std::int64_t rows;
    int columns;
    ElementType type;         // x, out
    ElementType weight_type;  // kF32 or `type`
    float epsilon;
};

Config config_of(const RmsNormForward& params);
void launch(const RmsNormForward& params, const Config& config, cudaStream_t stream);
void launch(const RmsNormForward& params, cudaStream_t stream);

// One block a row, one element a thread at a time: what the gate compares whole tensors with.
void launch_plain(const RmsNormForward& params, cudaStream_t stream);

}  // namespace norms
