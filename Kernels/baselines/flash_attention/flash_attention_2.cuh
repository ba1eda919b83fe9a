// Launches FlashAttention-2's kernel templates as its run_flash_fwd and mha_varlen_fwd do, without
// features that the suites do not use (dropout, windows, ALiBi, softcap, returned probabilities):
// each is a template argument of the kernel, and together they take minutes to compile.
#pragma once

#include "Kernels/baselines/flash_attention/flash_attention_2.h"

#ifndef H2H_LEFT_OUT
#include <flash_fwd_launch_template.h>

namespace flash_attention {

inline FLASH_NAMESPACE::Flash_fwd_params library_params(const FlashAttention2& from) {
    constexpr float kLog2E = 1.4426950408889634f;
    constexpr int kRounding = 128;
    const auto rounded = [](int length) {
        return (length + kRounding - 1) / kRounding * kRounding;
    };
    FLASH_NAMESPACE::Flash_fwd_params params = {};
    params.is_bf16 = true;
    params.q_ptr = const_cast<void*>(from.q);
    params.k_ptr = const_cast<void*>(from.k);
    params.v_ptr = const_cast<void*>(from.v);
    params.o_ptr = from.out;
    params.softmax_lse_ptr = from.lse;
    params.q_head_stride = params.k_head_stride = params.v_head_stride = from.head_dim;
    params.o_head_stride = from.head_dim;
    params.q_row_stride = params.o_row_stride = std::int64_t{from.heads} * from.head_dim;
    params.k_row_stride = params.v_row_stride = std::int64_t{from.kv_heads} * from.head_dim;
    params.cu_seqlens_q = const_cast<int*>(from.starts_q);
    params.cu_seqlens_k = const_cast<int*>(from.starts_kv);
    params.unpadded_lse = from.starts_q != nullptr;
    if (from.starts_q == nullptr) {
        params.q_batch_stride = params.o_batch_stride = from.longest_q * params.q_row_stride;
        params.k_batch_stride = params.v_batch_stride = from.longest_kv * params.k_row_stride;
    }
    params.b = from.batch;
    params.h = from.heads;
    params.h_k = from.kv_heads;
    params.h_h_k_ratio = from.heads / from.kv_heads;
    params.seqlen_q = from.longest_q;
    params.seqlen_k = from.longest_kv;
    params.seqlen_q_rounded = rounded(from.longest_q);
    params.seqlen_k_rounded = rounded(from.longest_kv);
    params.d = params.d_rounded = from.head_dim;
    params.total_q = from.total_q;
    params.scale_softmax = from.scale;
    params.scale_softmax_log2 = from.scale * kLog2E;
    // Probability of keeping a weight: no dropout.
    params.p_dropout = 1.0f;
    params.p_dropout_in_uint8_t = 255;
    params.rp_dropout = 1.0f;
    params.scale_softmax_rp_dropout = from.scale;
    params.is_causal = from.causal;
    params.window_size_left = from.causal ? from.longest_kv : -1;
    params.window_size_right = from.causal ? 0 : -1;
    params.is_seqlens_k_cumulative = true;
    params.num_splits = 1;
    return params;
}

// kEven: all lengths are equal and fill their tiles.
template <class Traits, bool kCausal, bool kEven>
void run(FLASH_NAMESPACE::Flash_fwd_params& params, cudaStream_t stream) {
    const auto kernel = &FLASH_NAMESPACE::flash_fwd_kernel<Traits, /*Is_dropout=*/false, kCausal,
                                                           /*Is_local=*/false, /*Has_alibi=*/false,
                                                           kEven, /*Is_even_K=*/true,
                                                           /*Is_softcap=*/false,
                                                           /*Return_softmax=*/false>;
    constexpr int kSharedBytes = Traits::kSmemSize;
    C10_CUDA_CHECK(
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes));
    const dim3 grid((params.seqlen_q + Traits::kBlockM - 1) / Traits::kBlockM, params.b, params.h);
    kernel<<<grid, Traits::kNThreads, kSharedBytes, stream>>>(params);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
}

// The library's choice for devices from sm_90 on.
template <int kHeadDim, int kBlockN>
using Traits =
    Flash_fwd_kernel_traits<kHeadDim, 128, kBlockN, 4, false, false, cutlass::bfloat16_t>;

// Whether the faster kernel without bounds checks may run.
template <class Traits>
bool is_even(const FlashAttention2& from) {
    return from.starts_q == nullptr && from.longest_q % Traits::kBlockM == 0 &&
           from.longest_kv % Traits::kBlockN == 0;
}

}  // namespace flash_attention
#else
#include "Kernels/baselines/flash_attention/flash_attention_2_left_out.cuh"
#endif
