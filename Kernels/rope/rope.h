// Rotary position embedding of queries and keys, in place.
//
//   heads   [tokens, heads, dim]; token t has position t % sequence
//   cos     fp32 [sequence, dim / 2], one value per pair; sin alike
//   pair    (i, i + dim / 2), or (2 i, 2 i + 1) if interleaved
//
// (a, b) becomes (a cos - b sin, b cos + a sin); backward rotates the other way.
#pragma once

#include <cstdint>

#include "Kernels/device/dtype.h"
#include "Kernels/device/launch.h"

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

// Throws std::invalid_argument for a shape or type that the kernels do not support.
void check(const Rope& params);

// These check addresses too.
device::Enqueue prepare(const Rope& params);
// One thread per pair: the reference for whole tensors.
device::Enqueue prepare_plain(const Rope& params);

}  // namespace rope
