// FlashInfer's FA2 template on ragged tensors, for one type and one size of heads.
#pragma once

#include "Kernels/baselines/flashinfer/prefill.h"

#ifdef H2H_LEFT_OUT
#include "Kernels/baselines/flashinfer/left_out.cuh"

namespace fi {

template <class T, std::uint32_t... kSizes>
using PrefillFa2 = LeftOut;

}  // namespace fi
#else
#include "Kernels/baselines/flashinfer/fa2_plan.cuh"
#include "Kernels/device/launch.h"

namespace fi {

template <class T, std::uint32_t kHeadDim, std::uint32_t kValueDim = kHeadDim>
class PrefillFa2 : public Planned {
  public:
    explicit PrefillFa2(const RaggedPrefill& call);
    void enqueue(cudaStream_t stream) override;

  private:
    using Params = flashinfer::BatchPrefillRaggedParams<T, T, T, std::int32_t>;

    template <flashinfer::MaskMode kMask>
    cudaError_t run(cudaStream_t stream);
    void place(const RaggedPrefill& call);

    Fa2Plan<T> plan_;
    Params params_;
    bool causal_;
};

template <class T, std::uint32_t kHeadDim, std::uint32_t kValueDim>
PrefillFa2<T, kHeadDim, kValueDim>::PrefillFa2(const RaggedPrefill& call) : causal_(call.causal) {
    plan_.make(*this, "BatchPrefillWithRaggedKVCacheKernel",
               {call.q_starts_on_host, call.kv_starts_on_host, call.q_heads, call.kv_heads,
                kHeadDim, kValueDim, /*page_size=*/1});
    place(call);
}

template <class T, std::uint32_t kHeadDim, std::uint32_t kValueDim>
void PrefillFa2<T, kHeadDim, kValueDim>::place(const RaggedPrefill& call) {
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
    params_.v_stride_n = call.kv_heads * kValueDim;
    params_.v_stride_h = kValueDim;
    plan_.place(params_);
}

template <class T, std::uint32_t kHeadDim, std::uint32_t kValueDim>
template <flashinfer::MaskMode kMask>
cudaError_t PrefillFa2<T, kHeadDim, kValueDim>::run(cudaStream_t stream) {
    DISPATCH_CTA_TILE_Q(plan_.info.cta_tile_q, kTile, {
        return flashinfer::BatchPrefillWithRaggedKVCacheDispatched<
            kTile, kHeadDim, kValueDim, flashinfer::PosEncodingMode::kNone,
            /*USE_FP16_QK_REDUCTION=*/false, kMask, Fa2Variant>(params_, plan_.partial_out,
                                                                plan_.partial_lse,
                                                                /*enable_pdl=*/true, stream);
    });
    return cudaErrorInvalidValue;
}

template <class T, std::uint32_t kHeadDim, std::uint32_t kValueDim>
void PrefillFa2<T, kHeadDim, kValueDim>::enqueue(cudaStream_t stream) {
    device::check(causal_ ? run<flashinfer::MaskMode::kCausal>(stream)
                          : run<flashinfer::MaskMode::kNone>(stream),
                  "FlashInfer's FA2 ragged prefill");
}

}  // namespace fi
#endif
