// Rotary position embedding of queries and keys, in place.
//
//   heads   [tokens, heads, dim]; token t has the position t % sequence
//   cos     fp32 [sequence, dim / 2], one value a pair; sin alike
//   pair    (i, i + dim / 2), or (2 i, 2 i + 1) where interleaved
//
// (a, b) becomes (a cos - b sin, b cos + a sin); backward turns the other way.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "Kernels/device/dtype.h"

namespace rope {

enum class Pass { kForward, kBackward };

struct Rope {
    Pass pass;
    bool interleaved;
    device::Dtype dtype;
    std::int64_t tokens;
    std::int64_t sequence;
    int query_heads;
    int key_heads;
    int dim;
    void* queries;
    void* keys;
    const float* cos;
    const float* sin;
};

// What `dim` must be a multiple of: half a head is then whole packets of 16 bytes.
constexpr int kDimMultiple = 16;

// Throws std::invalid_argument for what it cannot do, std::runtime_error for what CUDA refuses.
void launch(const Rope& params, cudaStream_t stream);

// One thread a pair: the reference for whole tensors.
void launch_plain(const Rope& params, cudaStream_t stream);

}  // namespace rope
