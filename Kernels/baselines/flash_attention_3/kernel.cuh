// Launches one instantiation of FlashAttention-3's forward kernel: what its mha_fwd sets, without
// what the suites do not use (windows, softcap, paged or appended keys, splits). Each of those is a
// template argument of the kernel, and together they take an hour to compile.
#pragma once

#include "Kernels/baselines/flash_attention_3/attention.h"
#include "Kernels/device/launch.h"
#include "Kernels/device/left_out.h"

#ifdef H2H_LEFT_OUT
#define FLASH_ATTENTION_3_VARIANT(name, ...)                                   \
    namespace flash_attention_3 {                                              \
    void launch_##name(const Attention&, cudaStream_t) { device::left_out(); } \
    }
#else

// The library ends the program when a call fails.
#include "cuda_check.h"
#undef CHECK_CUDA
#define CHECK_CUDA(call) device::check(call, "FlashAttention-3")

#include "flash_fwd_launch_template.h"

namespace flash_attention_3 {

inline Flash_fwd_params library_params(const Attention& from, const Kernel& kernel) {
    // The library prepares longer batches with several blocks, which the kernel must not overlap.
    constexpr int kMostBatchesOfOneBlock = 992;
    Flash_fwd_params params = {};
    params.is_bf16 = true;
    params.q_ptr = const_cast<void*>(from.q);
    params.k_ptr = const_cast<void*>(from.k);
    params.v_ptr = const_cast<void*>(from.v);
    params.o_ptr = from.out;
    params.softmax_lse_ptr = from.lse;
    params.q_head_stride = params.k_head_stride = kernel.head_dim;
    params.v_head_stride = params.o_head_stride = kernel.value_dim;
    params.v_dim_stride = 1;
    params.q_row_stride = std::int64_t{from.heads} * kernel.head_dim;
    params.o_row_stride = std::int64_t{from.heads} * kernel.value_dim;
    params.k_row_stride = std::int64_t{from.kv_heads} * kernel.head_dim;
    params.v_row_stride = std::int64_t{from.kv_heads} * kernel.value_dim;
    params.b = params.b_k = from.batch;
    params.h = from.heads;
    params.h_k = from.kv_heads;
    params.seqlen_q = from.longest_q;
    params.seqlen_k = from.longest_kv;
    params.total_q = from.total_q;
    params.total_k = from.total_kv;
    params.d = params.d_rounded = kernel.head_dim;
    params.dv = params.dv_rounded = kernel.value_dim;
    params.scale_softmax = from.scale;
    params.is_causal = kernel.causal;
    params.window_size_left = from.longest_kv - 1;
    params.window_size_right = kernel.causal ? 0 : from.longest_q - 1;
    params.page_size = 1;
    params.num_splits = 1;
    params.pack_gqa = kernel.packs_heads;
    params.arch = 90;
    params.num_sm = from.multiprocessors;
    // Always, where there is no window.
    params.varlen_sort_batches = true;
    params.head_swizzle = kernel.causal;
    const std::size_t words = schedule_words(from.batch);
    params.tile_count_semaphore = from.schedule + words - 1;
    if (!kernel.varlen) {
        params.q_batch_stride = from.longest_q * params.q_row_stride;
        params.o_batch_stride = from.longest_q * params.o_row_stride;
        params.k_batch_stride = from.longest_kv * params.k_row_stride;
        params.v_batch_stride = from.longest_kv * params.v_row_stride;
        return params;
    }
    const std::size_t each = words / kScheduleVectors;
    params.cu_seqlens_q = const_cast<int*>(from.starts_q);
    params.cu_seqlens_k = const_cast<int*>(from.starts_kv);
    params.num_splits_dynamic_ptr = from.schedule;
    params.num_m_blocks_ptr = from.schedule + each;
    params.varlen_batch_idx_ptr = from.schedule + 2 * each;
    if (kernel.causal) params.num_nheads_in_l2_ptr = from.schedule + 3 * each;
    params.prepare_varlen_pdl = from.batch <= kMostBatchesOfOneBlock;
    return params;
}

template <int kHeadDim, int kValueDim, bool kCausal, bool kVarlen, bool kPacksHeads,
          int kClusterBlocks>
void run(const Attention& attention, cudaStream_t stream) {
    static_assert(kClusterBlocks == 1 || (!kCausal && !kVarlen), "the library has no such kernel");
    using Element = cutlass::bfloat16_t;
    Flash_fwd_params params = library_params(
        attention, {kHeadDim, kValueDim, kCausal, kVarlen, kPacksHeads, kClusterBlocks});
    // Blocks of dense causal kernels take tiles from a counter. Others have a fixed order, or the
    // kernel that sorts the sequences clears it.
    if (kCausal && !kVarlen) {
        device::check(cudaMemsetAsync(params.tile_count_semaphore, 0, sizeof(int), stream),
                      "FlashAttention-3's counter of tiles");
    }
    run_flash_fwd</*Arch=*/90, kHeadDim, kValueDim, kClusterBlocks, Element, Element, kCausal,
                  /*Is_local=*/false, /*Has_softcap=*/false, kVarlen, /*PagedKVNonTMA=*/false,
                  /*AppendKV=*/false, /*HasQv=*/false, kPacksHeads, /*Split=*/false,
                  /*V_colmajor=*/false>(params, stream);
}

}  // namespace flash_attention_3

// The launcher of a variant.
#define FLASH_ATTENTION_3_VARIANT(name, ...)                              \
    namespace flash_attention_3 {                                         \
    void launch_##name(const Attention& attention, cudaStream_t stream) { \
        run<__VA_ARGS__>(attention, stream);                              \
    }                                                                     \
    }
#endif
