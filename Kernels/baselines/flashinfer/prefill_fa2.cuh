// FlashInfer's FA2 template on ragged tensors, for one type and head size.
#pragma once

#include "Kernels/baselines/flashinfer/fa2_tiles.cuh"
// The library's own headers need this order.
#include <flashinfer/attention/default_prefill_params.cuh>
#include <flashinfer/attention/prefill.cuh>
#include <flashinfer/attention/scheduler.cuh>
#include <flashinfer/attention/variants.cuh>
#include <string>

#include "Kernels/baselines/flashinfer/prefill.h"
#include "Kernels/device/launch.h"

namespace fi {

template <class T, std::uint32_t kHeadDim>
class PrefillFa2 : public Planned {
  public:
    explicit PrefillFa2(const RaggedPrefill& call);
    void enqueue(cudaStream_t stream) override;

  private:
    using Params = flashinfer::BatchPrefillRaggedParams<T, T, T, std::int32_t>;
    using Variant = flashinfer::DefaultAttention</*use_custom_mask=*/false,
                                                 /*use_sliding_window=*/false,
                                                 /*use_logits_soft_cap=*/false,
                                                 /*use_alibi=*/false>;

    template <flashinfer::MaskMode kMask>
    cudaError_t run(cudaStream_t stream);
    void place(const RaggedPrefill& call);

    PlanMemory memory_;
    flashinfer::PrefillPlanInfo info_;
    Params params_;
    T* partial_out_ = nullptr;
    float* partial_lse_ = nullptr;
    bool causal_;
};

template <class T, std::uint32_t kHeadDim>
PrefillFa2<T, kHeadDim>::PrefillFa2(const RaggedPrefill& call) : causal_(call.causal) {
    memory_.run(*this, [&] {
        Scratch& scratch = *memory_.scratch;
        auto* q_starts = const_cast<std::int32_t*>(call.q_starts_on_host.data());
        auto* kv_starts = const_cast<std::int32_t*>(call.kv_starts_on_host.data());
        const std::size_t batch = call.q_starts_on_host.size() - 1;
        return flashinfer::PrefillPlan<std::int32_t>(
            scratch.partials.address(), scratch.partials.bytes(), memory_.schedule.address(),
            scratch.pinned, memory_.schedule.bytes(), info_, q_starts, kv_starts,
            call.q_starts_on_host.back(), batch, call.q_heads, call.kv_heads, kHeadDim, kHeadDim,
            /*page_size=*/1, /*enable_cuda_graph=*/false, sizeof(T), /*window_left=*/-1,
            /*fixed_split_size=*/-1, /*disable_split_kv=*/false, /*num_colocated_ctas=*/0,
            scratch.stream);
    });
    place(call);
    kernel = "BatchPrefillWithRaggedKVCacheKernel, CTA_TILE_Q " + std::to_string(info_.cta_tile_q) +
             (info_.split_kv ? ", split KV and merge" : "");
}

template <class T, std::uint32_t kHeadDim>
void PrefillFa2<T, kHeadDim>::place(const RaggedPrefill& call) {
    const auto input = [](const void* address) {
        return static_cast<T*>(const_cast<void*>(address));
    };
    const auto starts = [](const std::int32_t* address) {
        return const_cast<std::int32_t*>(address);
    };
    params_ = Params(input(call.q), input(call.k), input(call.v), /*maybe_custom_mask=*/nullptr,
                     starts(call.q_starts), starts(call.kv_starts), /*maybe_mask_indptr=*/nullptr,
                     /*maybe_q_rope_offset=*/nullptr, /*maybe_k_rope_offset=*/nullptr,
                     static_cast<T*>(call.out), /*lse=*/nullptr, /*maybe_alibi_slopes=*/nullptr,
                     call.q_heads, call.kv_heads, call.q_heads * kHeadDim, kHeadDim,
                     call.kv_heads * kHeadDim, kHeadDim, /*window_left=*/-1,
                     /*logits_soft_cap=*/0.0f, call.scale, /*rope_scale=*/1.0f,
                     /*rope_theta=*/1e4f);
    const auto scheduled = [&](std::int64_t offset) {
        return flashinfer::GetPtrFromBaseOffset<std::int32_t>(memory_.schedule.address(), offset);
    };
    params_.request_indices = scheduled(info_.request_indices_offset);
    params_.qo_tile_indices = scheduled(info_.qo_tile_indices_offset);
    params_.kv_tile_indices = scheduled(info_.kv_tile_indices_offset);
    params_.o_indptr = scheduled(info_.o_indptr_offset);
    params_.kv_chunk_size_ptr = scheduled(info_.kv_chunk_size_ptr_offset);
    params_.padded_batch_size = info_.padded_batch_size;
    params_.max_total_num_rows = info_.total_num_rows;
    if (info_.split_kv) {
        void* partials = memory_.scratch->partials.address();
        params_.merge_indptr = scheduled(info_.merge_indptr_offset);
        partial_out_ = flashinfer::GetPtrFromBaseOffset<T>(partials, info_.v_offset);
        partial_lse_ = flashinfer::GetPtrFromBaseOffset<float>(partials, info_.s_offset);
    }
}

template <class T, std::uint32_t kHeadDim>
template <flashinfer::MaskMode kMask>
cudaError_t PrefillFa2<T, kHeadDim>::run(cudaStream_t stream) {
    DISPATCH_CTA_TILE_Q(info_.cta_tile_q, kTile, {
        return flashinfer::BatchPrefillWithRaggedKVCacheDispatched<
            kTile, kHeadDim, kHeadDim, flashinfer::PosEncodingMode::kNone,
            /*USE_FP16_QK_REDUCTION=*/false, kMask, Variant>(params_, partial_out_, partial_lse_,
                                                             /*enable_pdl=*/true, stream);
    });
    return cudaErrorInvalidValue;
}

template <class T, std::uint32_t kHeadDim>
void PrefillFa2<T, kHeadDim>::enqueue(cudaStream_t stream) {
    device::check(causal_ ? run<flashinfer::MaskMode::kCausal>(stream)
                          : run<flashinfer::MaskMode::kNone>(stream),
                  "FlashInfer's FA2 ragged prefill");
}

}  // namespace fi
