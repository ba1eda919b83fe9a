// FlashInfer's gated activations and rotary embedding as launchers; bf16.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "Kernels/baselines/flashinfer/planned.h"

namespace fi {

enum class Gate { kSilu, kGeluTanh, kGelu };

// out [rows, columns] = unit(gate) * up; a row of the input is gate and up. Columns are a multiple
// of 8.
struct ActAndMul {
    Gate gate;
    const void* input;
    void* out;
    std::int64_t rows;
    int columns;
};

// Heads in place: queries [tokens, query_heads, dim], keys [tokens, key_heads, dim]; dim 64 or 128.
struct Rope {
    void* queries;
    void* keys;
    std::uint32_t tokens;
    std::uint32_t query_heads;
    std::uint32_t key_heads;
    std::uint32_t dim;
    bool interleaved;
};

// The cache as the library expects it: one row per position, cosines before sines; and the position
// of each token.
class RopeTables {
  public:
    // From tables [sequence, dim / 2] in device memory; waits for the device.
    RopeTables(const float* cos, const float* sin, std::uint32_t sequence, std::uint32_t dim,
               std::uint32_t tokens);

    float* cos_and_sin() const { return static_cast<float*>(cache_.address()); }
    std::int32_t* positions() const { return static_cast<std::int32_t*>(positions_.address()); }

  private:
    DeviceMemory cache_;
    DeviceMemory positions_;
};

void launch(const ActAndMul& params, cudaStream_t stream);
void launch(const Rope& params, const RopeTables& tables, cudaStream_t stream);

}  // namespace fi
