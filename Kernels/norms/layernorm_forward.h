// LayerNorm forward: out[r, c] = (x[r, c] - mean[r]) * rstd[r] * weight[c] + bias[c],
// rstd[r] = 1 / sqrt(variance_c(x[r, c]) + epsilon). Arithmetic in fp32, one rounding at the end.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "Kernels/norms/config.h"
#include "Kernels/norms/element_type.h"

namespace norms {

// Tensors are dense, row major, 16-byte aligned; x and out may be the same.
struct LayerNormForward {
    const void* x;       // [rows, columns]
    const void* weight;  // [columns]
    const void* bias;    // [columns]
    void* out;           // [rows, columns]
    float* mean;         // [rows], or null
    float* rstd;         // [rows], or null
    std::int64_t rows;
    int columns;
    ElementType type;         // x, out
    ElementType weight_type;  // weight, bias: kF32 or `type`
    float epsilon;
};

Config config_of(const LayerNormForward& params);
void launch(const LayerNormForward& params, const Config& config, cudaStream_t stream);
void launch(const LayerNormForward& params, cudaStream_t stream);
void launch_plain(const LayerNormForward& params, cudaStream_t stream);

}  // namespace norms
