// Cross-entropy backward, from the lse that the forward pass saved:
// logits_gradient[r, c] = (exp(logits[r, c] - lse[r]) - [c == target[r]]) * loss_gradient[r].
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "Kernels/norms/config.h"
#include "Kernels/norms/element_type.h"

namespace norms {

// Tensors are dense, row major; matrices are 16-byte aligned; the gradient may overwrite the
// logits.
struct CrossEntropyBackward {
    const void* logits;           // [rows, columns]
    const std::int64_t* targets;  // [rows]
    const float* lse;             // [rows]
    const float* loss_gradient;   // [rows]
    void* logits_gradient;        // [rows, columns]
    std::int64_t rows;
    int columns;
    ElementType type;
};

Config config_of(const CrossEntropyBackward& params);
void launch(const CrossEntropyBackward& params, const Config& config, cudaStream_t stream);
void launch(const CrossEntropyBackward& params, cudaStream_t stream);
void launch_plain(const CrossEntropyBackward& params, cudaStream_t stream);

}  // namespace norms
