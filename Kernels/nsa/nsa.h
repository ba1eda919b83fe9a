// The selected-block branch of native sparse attention, forward, causal.
//
//   queries        [tokens, heads, dim]; heads / groups of them share a group
//   keys, values   [tokens, groups, dim]
//   blocks         int32 [tokens, groups, selected]: blocks of `block` keys of the query's own
//                  sequence; -1 fills up. Each at most once, none that starts after the query.
//   out            [tokens, heads, dim] = softmax(scale * q k^T) v over the keys up to the query
//   lse            fp32 [tokens, heads], natural logarithm
//
// Token t is at position t % sequence of sequence t / sequence.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "Kernels/device/element_type.h"

namespace nsa {

struct Selected {
    device::ElementType type;
    std::int64_t tokens;
    int sequence;
    int heads;
    int groups;
    int dim;
    int block;
    int selected;
    float scale;
    const void* queries;
    const void* keys;
    const void* values;
    const std::int32_t* blocks;
    void* out;
    float* lse;
};

// What the kernel has been written for.
constexpr int kMaxHeadsPerGroup = 16;
constexpr int kMaxSelected = 32;
constexpr int kBlockMultiple = 16;

// fp16 and bf16, dim 64 and 128. Throws std::invalid_argument for what it cannot do,
// std::runtime_error for what CUDA refuses.
void launch(const Selected& params, cudaStream_t stream);

// One block a query head, all types, dim up to 256: the reference for whole tensors.
void launch_plain(const Selected& params, cudaStream_t stream);

}  // namespace nsa
