// Cross-entropy forward and backward in one, in place: loss[r] = ln(sum_c(exp(logits[r, c]))) -
// logits[r, target], and logits[r, c] becomes the gradient of the losses' sum, softmax(logits)[r,
// c] - [c == target[r]]. A target that is no column gives a loss of NaN.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "Kernels/norms/config.h"
#include "Kernels/norms/element_type.h"

namespace norms {

// Tensors are dense, row major; logits is 16-byte aligned.
struct CrossEntropyFused {
    void* logits;                 // [rows, columns]
    const std::int64_t* targets;  // [rows]
    float* loss;                  // [rows]
    std::int64_t rows;
    int columns;
    ElementType type;
};

Config config_of(const CrossEntropyFused& params);
void launch(const CrossEntropyFused& params, const Config& config, cudaStream_t stream);
void launch(const CrossEntropyFused& params, cudaStream_t stream);
void launch_plain(const CrossEntropyFused& params, cudaStream_t stream);

}  // namespace norms
