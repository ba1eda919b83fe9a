// Cross-entropy forward: lse[r] = ln(sum_c(exp(logits[r, c]))), loss[r] = lse[r] - logits[r,
// target]. A target that is no column gives a loss of NaN.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "Kernels/norms/config.h"
#include "Kernels/norms/element_type.h"

namespace norms {

// Tensors are dense, row major; logits is 16-byte aligned.
struct CrossEntropyForward {
    const void* logits;           // [rows, columns]
    const std::int64_t* targets;  // [rows]
    float* loss;                  // [rows]
    float* lse;                   // [rows]
    std::int64_t rows;
    int columns;
    ElementType type;
};

Config config_of(const CrossEntropyForward& params);
void launch(const CrossEntropyForward& params, const Config& config, cudaStream_t stream);
void launch(const CrossEntropyForward& params, cudaStream_t stream);
void launch_plain(const CrossEntropyForward& params, cudaStream_t stream);

}  // namespace norms
