// FlashInfer's row operations as launchers.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "Kernels/baselines/flashinfer/type.h"

namespace fi {

// Weights have the type of the activations. Offsets are 32-bit in these kernels: the caller
// keeps rows * columns below 2^32.
struct RmsNorm {
    const void* x;
    const void* weight;
    void* out;
    std::uint32_t rows;
    std::uint32_t columns;
    Type type;
    float epsilon;
};

// In place: residual += x, then x = norm(residual) * weight. A row must fit in shared memory as
// f32.
struct FusedAddRmsNorm {
    void* x;
    void* residual;
    const void* weight;
    std::uint32_t rows;
    std::uint32_t columns;
    Type type;
    float epsilon;
};

// bf16 with f32 weights, as in the library's own entry point. A row must fit in shared memory.
struct LayerNorm {
    const void* x;
    const float* weight;
    const float* bias;
    void* out;
    std::uint32_t rows;
    std::uint32_t columns;
    float epsilon;
};

void launch(const RmsNorm& params, cudaStream_t stream);
void launch(const FusedAddRmsNorm& params, cudaStream_t stream);
void launch(const LayerNorm& params, cudaStream_t stream);

}  // namespace fi
