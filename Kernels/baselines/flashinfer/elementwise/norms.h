// FlashInfer's row operations as launchers.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "Kernels/baselines/flashinfer/type.h"

namespace fi {

// Shared with Rust.
enum class NormOp : std::uint8_t {
    RmsNorm,
    // In place: residual += x, then x = norm(residual) * weight. A row must fit in shared memory as
    // f32.
    FusedAddRmsNorm,
    // bf16 with f32 weights, as in the library's own entry point. A row must fit in shared memory.
    LayerNorm,
};

// Weights have the type of the activations unless the operation says otherwise; tensors that it
// does not have are null. Offsets are 32-bit in these kernels: the caller keeps rows * columns
// below 2^32.
struct Norm {
    NormOp op;
    Type type;
    std::uint32_t rows;
    std::uint32_t columns;
    float epsilon;
    void* x;
    void* residual;
    void* weight;
    void* bias;
    void* out;
};

void launch(const Norm& params, cudaStream_t stream);

}  // namespace fi
