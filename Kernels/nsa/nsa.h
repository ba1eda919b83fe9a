// Native sparse attention, forward, causal: its three branches and their gated sum.
//
//   queries        [tokens, heads, dim]; heads / groups of them share a group
//   keys, values   [rows, groups, dim]: one row per token, or per block in the compressed branch
//   out            [tokens, heads, dim] = softmax(scale * q k^T) v over the keys that a query sees
//   lse            fp32 [tokens, heads], natural logarithm
//
// Token t is at position t % sequence of sequence t / sequence. A query that sees nothing has out
// and lse 0, as in flash-linear-attention.
#pragma once

#include <cstdint>

#include "Kernels/device/dtype.h"
#include "Kernels/device/launch.h"

namespace nsa {

struct Branch {
    device::Dtype dtype;
    std::int64_t tokens;
    int sequence;
    int heads;
    int groups;
    int dim;
    float scale;
    const void* queries;
    const void* keys;
    const void* values;
    void* out;
    float* lse;
};

// The blocks of keys selected for each query.
struct Selected : Branch {
    int block;
    int selected;
    // int32 [tokens, groups, selected]: blocks of `block` keys of the query's own sequence, padded
    // with -1. Each at most once, none that starts after the query.
    const std::int32_t* blocks;
};

enum class Reach {
    // The last `size` keys up to the query.
    kWindow,
    // One row of keys per `size` tokens, the last perhaps for fewer: the whole blocks that end at
    // or before the query.
    kCompressed,
};

// Branches in which a query sees one range of rows.
struct Banded : Branch {
    Reach reach;
    int size;
};

// out = sum of gate * output over three branches: outputs [rows, dim], gates [rows].
struct Gated {
    device::Dtype dtype;
    std::int64_t rows;
    int dim;
    const void* outputs[3];
    const void* gates[3];
    void* out;
};

// Throw std::invalid_argument for a shape or type that the kernels do not support: the tuned
// branches take fp16 and bf16 with dim 64 or 128, the plain ones all types with dim up to 256.
void check(const Selected& params);
void check(const Banded& params);
void check(const Gated& params);
void check_plain(const Selected& params);
void check_plain(const Banded& params);
void check_plain(const Gated& params);

// These check addresses too.
device::Enqueue prepare(const Selected& params);
device::Enqueue prepare(const Banded& params);
device::Enqueue prepare(const Gated& params);

// One block per query head, or one thread per element: the references for whole tensors.
device::Enqueue prepare_plain(const Selected& params);
device::Enqueue prepare_plain(const Banded& params);
device::Enqueue prepare_plain(const Gated& params);

}  // namespace nsa
