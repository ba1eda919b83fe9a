// FlashInfer's decode kernel on CUDA cores, for one type and head size; one query per sequence.
#pragma once

#include "Kernels/baselines/flashinfer/decode.h"

#ifdef H2H_LEFT_OUT
#include "Kernels/baselines/flashinfer/left_out.cuh"

namespace fi {

template <class T, std::uint32_t kHeadDim>
using DecodeOnCudaCores = LeftOut;

}  // namespace fi
#else
#include <flashinfer/attention/decode.cuh>
#include <flashinfer/attention/default_decode_params.cuh>
#include <flashinfer/attention/scheduler.cuh>
#include <flashinfer/attention/variants.cuh>
#include <stdexcept>

#include "Kernels/device/launch.h"

namespace fi {

template <class T, std::uint32_t kHeadDim>
class DecodeOnCudaCores : public Planned {
  public:
    explicit DecodeOnCudaCores(const PagedDecode& call);
    void enqueue(cudaStream_t stream) override;

  private:
    using Params = flashinfer::BatchDecodeParams<T, T, T, std::int32_t>;
    using Variant = flashinfer::DefaultAttention</*use_custom_mask=*/false,
                                                 /*use_sliding_window=*/false,
                                                 /*use_logits_soft_cap=*/false,
                                                 /*use_alibi=*/false>;
    static constexpr auto kNoPositions = flashinfer::PosEncodingMode::kNone;

    cudaError_t plan(const PagedDecode& call);
    void place(const PagedDecode& call);

    PlanMemory memory_;
    flashinfer::DecodePlanInfo info_;
    Params params_;
    T* partial_out_ = nullptr;
    float* partial_lse_ = nullptr;
};

template <class T, std::uint32_t kHeadDim>
DecodeOnCudaCores<T, kHeadDim>::DecodeOnCudaCores(const PagedDecode& call) {
    if (call.q_len != 1) throw std::invalid_argument("only one query per sequence is supported");
    memory_.run(*this, [&] { return plan(call); });
    place(call);
    kernel = "BatchDecodeWithPagedKVCacheKernel";
    if (info_.split_kv) kernel += ", split KV and merge";
}

template <class T, std::uint32_t kHeadDim>
cudaError_t DecodeOnCudaCores<T, kHeadDim>::plan(const PagedDecode& call) {
    Scratch& scratch = *memory_.scratch;
    auto* page_indptr = const_cast<std::int32_t*>(call.page_indptr_on_host.data());
    const std::size_t batch = call.page_indptr_on_host.size() - 1;
    DISPATCH_GQA_GROUP_SIZE(call.heads / call.kv_heads, kGroup, {
        return flashinfer::DecodePlan<kHeadDim, kNoPositions, Variant, Params>(
            scratch.partials.address(), scratch.partials.bytes(), memory_.schedule.address(),
            scratch.pinned, memory_.schedule.bytes(), info_, page_indptr, batch, call.heads,
            call.page_size, /*enable_cuda_graph=*/false, scratch.stream,
            flashinfer::BatchDecodeWithPagedKVCacheWorkEstimationDispatched<
                kGroup, kHeadDim, kNoPositions, Variant, Params>);
    });
    return cudaErrorInvalidValue;
}

template <class T, std::uint32_t kHeadDim>
void DecodeOnCudaCores<T, kHeadDim>::place(const PagedDecode& call) {
    const auto input = [](const void* address) {
        return static_cast<T*>(const_cast<void*>(address));
    };
    const auto table = [](const std::int32_t* address) {
        return const_cast<std::int32_t*>(address);
    };
    const std::uint32_t batch = call.page_indptr_on_host.size() - 1;
    const flashinfer::paged_kv_t<T, std::int32_t> cache(
        call.kv_heads, call.page_size, kHeadDim, batch,
        call.heads_first ? flashinfer::QKVLayout::kHND : flashinfer::QKVLayout::kNHD,
        input(call.k_pages), input(call.v_pages), table(call.page_indices), table(call.page_indptr),
        table(call.last_page_lengths));
    params_ = Params(input(call.q), /*q_rope_offset=*/nullptr, cache, static_cast<T*>(call.out),
                     /*lse=*/nullptr, /*maybe_alibi_slopes=*/nullptr, call.heads,
                     call.heads * kHeadDim, kHeadDim, /*window_left=*/-1,
                     /*logits_soft_cap=*/0.0f, call.scale, /*rope_scale=*/1.0f,
                     /*rope_theta=*/1e4f);
    const auto scheduled = [&](std::int64_t offset) {
        return flashinfer::GetPtrFromBaseOffset<std::int32_t>(memory_.schedule.address(), offset);
    };
    params_.request_indices = scheduled(info_.request_indices_offset);
    params_.kv_tile_indices = scheduled(info_.kv_tile_indices_offset);
    params_.o_indptr = scheduled(info_.o_indptr_offset);
    params_.kv_chunk_size_ptr = scheduled(info_.kv_chunk_size_ptr_offset);
    params_.padded_batch_size = info_.padded_batch_size;
    if (info_.split_kv) {
        void* partials = memory_.scratch->partials.address();
        partial_out_ = flashinfer::GetPtrFromBaseOffset<T>(partials, info_.v_offset);
        partial_lse_ = flashinfer::GetPtrFromBaseOffset<float>(partials, info_.s_offset);
    }
}

template <class T, std::uint32_t kHeadDim>
void DecodeOnCudaCores<T, kHeadDim>::enqueue(cudaStream_t stream) {
    device::check(
        flashinfer::BatchDecodeWithPagedKVCacheDispatched<kHeadDim, kNoPositions, Variant>(
            params_, partial_out_, partial_lse_, /*enable_pdl=*/true, stream),
        "FlashInfer's decode");
}

}  // namespace fi
#endif
