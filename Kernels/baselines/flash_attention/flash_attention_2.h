// FlashAttention-2's forward kernels: bf16, head dimension 64 or 128.
#pragma once

#include <cuda_runtime.h>

namespace flash_attention {

// Contiguous tensors: q and out [total_q, heads, head_dim], k and v [total_kv, kv_heads, head_dim],
// lse fp32 [heads, total_q], or [batch, heads, longest_q] if all lengths are equal.
struct FlashAttention2 {
    const void* q;
    const void* k;
    const void* v;
    void* out;
    float* lse;
    // [batch + 1]; both null if every sequence has longest_q queries and longest_kv keys.
    const int* starts_q;
    const int* starts_kv;
    int batch;
    int total_q;
    int longest_q;
    int longest_kv;
    int heads;
    int kv_heads;
    int head_dim;
    bool causal;
    float scale;
};

void launch(const FlashAttention2& params, cudaStream_t stream);

// Instantiated one per translation unit, so that they compile in parallel.
void launch_causal_128(const FlashAttention2& params, cudaStream_t stream);
void launch_full_128(const FlashAttention2& params, cudaStream_t stream);
void launch_64(const FlashAttention2& params, cudaStream_t stream);

}  // namespace flash_attention
