// Softmax backward over rows, from the forward pass's output:
// x_gradient[r, c] = out[r, c] * (out_gradient[r, c] - sum_c(out[r, c] * out_gradient[r, c])).
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "Kernels/norms/config.h"
#include "Kernels/norms/element_type.h"

namespace norms {

// Tensors are [rows, columns], dense, row major, 16-byte aligned; x_gradient may be an input.
struct SoftmaxBackward {
    const void* out;
    const void* out_gradient;
    void* x_gradient;
    std::int64_t rows;
    int columns;
    ElementType type;
};

Config config_of(const SoftmaxBackward& params);
void launch(const SoftmaxBackward& params, const Config& config, cudaStream_t stream);
void launch(const SoftmaxBackward& params, cudaStream_t stream);
void launch_plain(const SoftmaxBackward& params, cudaStream_t stream);

}  // namespace norms
