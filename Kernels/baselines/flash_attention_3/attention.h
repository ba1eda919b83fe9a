// FlashAttention-3's forward kernels for Hopper, in bf16.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "Kernels/baselines/flash_attention_3/choose.h"

namespace flash_attention_3 {

// Contiguous tensors: q [total_q, heads, head_dim], k [total_kv, kv_heads, head_dim], out and v the
// same with value_dim, lse fp32 [heads, total_q], or [batch, heads, longest_q] if all lengths are
// equal.
struct Attention {
    const void* q;
    const void* k;
    const void* v;
    void* out;
    float* lse;
    // schedule_words(batch) of them, aligned to 16 bytes; the launch writes them first.
    int* schedule;
    // [batch + 1]; not read by dense kernels.
    const int* starts_q;
    const int* starts_kv;
    int batch;
    int total_q;
    int total_kv;
    int longest_q;
    int longest_kv;
    int heads;
    int kv_heads;
    float scale;
    int multiprocessors;
};

// Vectors with one element per sequence, each aligned to 16 bytes: splits, tiles of queries, the
// sequence, heads that fit in L2. Then the count of tiles that are taken.
constexpr int kScheduleVectors = 4;
constexpr std::size_t schedule_words(int batch) {
    return static_cast<std::size_t>((batch + 3) / 4 * 4) * kScheduleVectors + 1;
}

using Launch = void (*)(const Attention& attention, cudaStream_t stream);

// Null if this build does not have the kernel.
Launch find(const Kernel& kernel);

}  // namespace flash_attention_3
