// FlashInfer's FA3 template (TMA, wgmma) on ragged tensors, for one type and one size of heads;
// sm_90a only.
//
// Its parameter structs have the same names as FA2's: never include both in one translation unit.
#pragma once

#include "Kernels/baselines/flashinfer/prefill.h"

#ifdef H2H_LEFT_OUT
#include "Kernels/baselines/flashinfer/left_out.cuh"

namespace fi {

template <class T, std::uint32_t... kSizes>
using PrefillFa3 = LeftOut;

}  // namespace fi
#else
#include <flashinfer/attention/hopper/default_params.cuh>
#include <flashinfer/attention/hopper/prefill_sm90.cuh>
#include <flashinfer/attention/hopper/variants.cuh>
#include <flashinfer/attention/scheduler.cuh>
#include <stdexcept>

#include "Kernels/device/launch.h"

namespace fi {

template <class T, std::uint32_t kHeadDim, std::uint32_t kValueDim = kHeadDim>
class PrefillFa3 : public Planned {
  public:
    explicit PrefillFa3(const RaggedPrefill& call);
    void enqueue(cudaStream_t stream) override;

  private:
    using Params = flashinfer::BatchPrefillRaggedParams<T, T, T, std::int32_t>;
    using Variant = flashinfer::DefaultAttention</*use_logits_soft_cap=*/false>;

    template <flashinfer::MaskMode kMask>
    cudaError_t run(cudaStream_t stream);
    void place(const RaggedPrefill& call);

    PlanMemory memory_;
    flashinfer::PrefillPlanSM90Info info_;
    Params params_ = {};
};

template <class T, std::uint32_t kHeadDim, std::uint32_t kValueDim>
PrefillFa3<T, kHeadDim, kValueDim>::PrefillFa3(const RaggedPrefill& call) {
    const std::size_t batch = call.q_starts_on_host.size() - 1;
    std::vector<std::int32_t> kv_lengths(batch);
    for (std::size_t i = 0; i < batch; ++i) {
        kv_lengths[i] = call.kv_starts_on_host[i + 1] - call.kv_starts_on_host[i];
    }
    memory_.run(*this, [&] {
        Scratch& scratch = *memory_.scratch;
        auto* q_starts = const_cast<std::int32_t*>(call.q_starts_on_host.data());
        auto* kv_starts = const_cast<std::int32_t*>(call.kv_starts_on_host.data());
        return flashinfer::PrefillSM90Plan<std::int32_t>(
            scratch.partials.address(), scratch.partials.bytes(), memory_.schedule.address(),
            scratch.pinned, memory_.schedule.bytes(), info_, q_starts, kv_starts, kv_lengths.data(),
            call.q_starts_on_host.back(), batch, call.q_heads, call.kv_heads, kHeadDim, kValueDim,
            /*page_size=*/1, call.causal, /*enable_cuda_graph=*/false, sizeof(T), scratch.stream);
    });
    if (info_.same_schedule_for_all_heads) {
        // It would double the compile time, for batches that no suite has.
        throw std::invalid_argument(
            "the planner chose one schedule for all heads, as it does above 4096 query tiles; "
            "that kernel is not in this build");
    }
    place(call);
    kernel = "PrefillWithKVCacheKernel (FA3)";
}

template <class T, std::uint32_t kHeadDim, std::uint32_t kValueDim>
void PrefillFa3<T, kHeadDim, kValueDim>::place(const RaggedPrefill& call) {
    const auto input = [](const void* address) {
        return static_cast<T*>(const_cast<void*>(address));
    };
    params_.q_ptr = input(call.q);
    params_.k_ptr = input(call.k);
    params_.v_ptr = input(call.v);
    params_.o_ptr = static_cast<T*>(call.out);
    params_.lse_ptr = nullptr;
    params_.q_stride_n = std::int64_t{call.q_heads} * kHeadDim;
    params_.k_stride_n = std::int64_t{call.kv_heads} * kHeadDim;
    params_.q_stride_h = params_.k_stride_h = kHeadDim;
    params_.o_stride_n = std::int64_t{call.q_heads} * kValueDim;
    params_.v_stride_n = std::int64_t{call.kv_heads} * kValueDim;
    params_.o_stride_h = params_.v_stride_h = kValueDim;
    params_.nnz_qo = call.q_starts_on_host.back();
    params_.nnz_kv = call.kv_starts_on_host.back();
    params_.num_qo_heads = static_cast<int>(call.q_heads);
    params_.num_kv_heads = static_cast<int>(call.kv_heads);
    params_.group_size = params_.num_qo_heads / params_.num_kv_heads;
    params_.window_left = -1;
    params_.causal = call.causal;
    params_.additional_params.sm_scale = call.scale;
    const auto scheduled = [&](std::int64_t offset) {
        return flashinfer::GetPtrFromBaseOffset<std::int32_t>(memory_.schedule.address(), offset);
    };
    params_.qo_tile_indices = scheduled(info_.qo_tile_indices_offset);
    params_.qo_indptr = scheduled(info_.qo_indptr_offset);
    params_.kv_indptr = scheduled(info_.kv_indptr_offset);
    params_.qo_lens = scheduled(info_.qo_len_offset);
    params_.kv_lens = scheduled(info_.kv_len_offset);
    params_.head_indices = scheduled(info_.head_indices_offset);
    params_.work_indptr = scheduled(info_.work_indptr_offset);
    params_.batch_indices = scheduled(info_.batch_indices_offset);
}

template <class T, std::uint32_t kHeadDim, std::uint32_t kValueDim>
template <flashinfer::MaskMode kMask>
cudaError_t PrefillFa3<T, kHeadDim, kValueDim>::run(cudaStream_t stream) {
    // The library ignores enable_pdl here.
    return flashinfer::BatchPrefillWithRaggedKVCacheDispatched<
        kHeadDim, kValueDim, kMask, /*LEFT_SLIDING_WINDOW=*/false,
        /*SAME_SCHEDULE_FOR_ALL_HEADS=*/false, Variant>(params_, /*enable_pdl=*/true, stream);
}

template <class T, std::uint32_t kHeadDim, std::uint32_t kValueDim>
void PrefillFa3<T, kHeadDim, kValueDim>::enqueue(cudaStream_t stream) {
    device::check(params_.causal ? run<flashinfer::MaskMode::kCausal>(stream)
                                 : run<flashinfer::MaskMode::kNone>(stream),
                  "FlashInfer's FA3 ragged prefill");
}

}  // namespace fi
#endif
