// Softmax forward over rows: out[r, c] = exp(x[r, c] - max_r) / sum_c(exp(x[r, c] - max_r)).
// Arithmetic in fp32, one rounding at the end.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "Kernels/norms/config.h"
#include "Kernels/norms/element_type.h"

namespace norms {

// Tensors are dense, row major, 16-byte aligned; x and out may be the same.
struct SoftmaxForward {
    const void* x;  // [rows, columns]
    void* out;      // [rows, columns]
    std::int64_t rows;
    int columns;
    ElementType type;
};

Config config_of(const SoftmaxForward& params);
void launch(const SoftmaxForward& params, const Config& config, cudaStream_t stream);
void launch(const SoftmaxForward& params, cudaStream_t stream);
void launch_plain(const SoftmaxForward& params, cudaStream_t stream);

}  // namespace norms
