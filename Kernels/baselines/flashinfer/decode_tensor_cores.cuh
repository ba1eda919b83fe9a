// FlashInfer's decode on tensor cores, for one type, head size and cache type: its FA2 prefill
// kernel over pages, which packs the query heads that share a KV head into one tile.
#pragma once

#include "Kernels/baselines/flashinfer/decode.h"

#ifdef H2H_LEFT_OUT
#include "Kernels/baselines/flashinfer/left_out.cuh"

namespace fi {

template <class T, std::uint32_t kHeadDim, class Cache = T>
using DecodeOnTensorCores = LeftOut;

}  // namespace fi
#else
#include <stdexcept>
#include <type_traits>

#include "Kernels/baselines/flashinfer/fa2_plan.cuh"
#include "Kernels/device/launch.h"

namespace fi {

// Rows of the compiled query tiles: the library also has 128, for more rows than any suite has. FP8
// caches use the smaller one.
constexpr std::uint32_t kSmallTile = 16, kLargeTile = 64;

// The library's kernels scale outputs by this if their parameters have it.
template <class Params>
struct WithValueScale : Params {
    float v_scale;
};

template <class T, std::uint32_t kHeadDim, class Cache = T>
class DecodeOnTensorCores : public Planned {
  public:
    explicit DecodeOnTensorCores(const PagedDecode& call);
    void enqueue(cudaStream_t stream) override;

  private:
    static constexpr bool kFp8 = sizeof(Cache) == 1;
    using Plain = flashinfer::BatchPrefillPagedParams<T, Cache, T, std::int32_t>;
    using Params = std::conditional_t<kFp8, WithValueScale<Plain>, Plain>;

    template <std::uint32_t kTile, flashinfer::MaskMode kMask>
    cudaError_t run_tile(cudaStream_t stream);
    template <flashinfer::MaskMode kMask>
    cudaError_t run(cudaStream_t stream);
    void place(const PagedDecode& call);

    Fa2Plan<T> plan_;
    DeviceMemory q_starts_;
    Params params_;
    bool causal_;
};

template <class T, std::uint32_t kHeadDim, class Cache>
DecodeOnTensorCores<T, kHeadDim, Cache>::DecodeOnTensorCores(const PagedDecode& call)
    : q_starts_(call.page_indptr_on_host.size() * sizeof(std::int32_t)), causal_(call.q_len > 1) {
    const std::size_t batch = call.page_indptr_on_host.size() - 1;
    std::vector<std::int32_t> q_starts(batch + 1);
    for (std::size_t i = 0; i <= batch; ++i) {
        q_starts[i] = static_cast<std::int32_t>(i * call.q_len);
    }
    device::check(
        cudaMemcpy(q_starts_.address(), q_starts.data(), q_starts_.bytes(), cudaMemcpyHostToDevice),
        "copy of the starts of queries");
    plan_.make(*this, "BatchPrefillWithPagedKVCacheKernel",
               {q_starts, call.page_indptr_on_host, call.heads, call.kv_heads, kHeadDim, kHeadDim,
                call.page_size});
    if (plan_.info.cta_tile_q > (kFp8 ? kSmallTile : kLargeTile) || (kFp8 && causal_)) {
        throw std::invalid_argument(
            "this build has tiles of at most 64 query rows; over FP8 16, from one query");
    }
    place(call);
}

template <class T, std::uint32_t kHeadDim, class Cache>
void DecodeOnTensorCores<T, kHeadDim, Cache>::place(const PagedDecode& call) {
    const auto cache = [](const void* address) {
        return static_cast<Cache*>(const_cast<void*>(address));
    };
    const auto table = [](const std::int32_t* address) {
        return const_cast<std::int32_t*>(address);
    };
    const std::uint32_t batch = call.page_indptr_on_host.size() - 1;
    params_.q = static_cast<T*>(const_cast<void*>(call.q));
    params_.paged_kv = flashinfer::paged_kv_t<Cache, std::int32_t>(
        call.kv_heads, call.page_size, kHeadDim, batch,
        call.heads_first ? flashinfer::QKVLayout::kHND : flashinfer::QKVLayout::kNHD,
        cache(call.k_pages), cache(call.v_pages), table(call.page_indices), table(call.page_indptr),
        table(call.last_page_lengths));
    params_.q_indptr = static_cast<std::int32_t*>(q_starts_.address());
    params_.o = static_cast<T*>(call.out);
    params_.lse = nullptr;
    params_.group_size = flashinfer::uint_fastdiv(call.heads / call.kv_heads);
    params_.num_qo_heads = call.heads;
    params_.q_stride_n = static_cast<std::int32_t>(call.heads * kHeadDim);
    params_.q_stride_h = kHeadDim;
    params_.window_left = -1;
    params_.sm_scale = call.scale;
    if constexpr (kFp8) params_.v_scale = call.v_scale;
    plan_.place(params_);
}

template <class T, std::uint32_t kHeadDim, class Cache>
template <std::uint32_t kTile, flashinfer::MaskMode kMask>
cudaError_t DecodeOnTensorCores<T, kHeadDim, Cache>::run_tile(cudaStream_t stream) {
    return flashinfer::BatchPrefillWithPagedKVCacheDispatched<
        kTile, kHeadDim, kHeadDim, flashinfer::PosEncodingMode::kNone,
        /*USE_FP16_QK_REDUCTION=*/false, kMask, Fa2Variant>(params_, plan_.partial_out,
                                                            plan_.partial_lse,
                                                            /*enable_pdl=*/true, stream);
}

template <class T, std::uint32_t kHeadDim, class Cache>
template <flashinfer::MaskMode kMask>
cudaError_t DecodeOnTensorCores<T, kHeadDim, Cache>::run(cudaStream_t stream) {
    if constexpr (!kFp8) {
        if (plan_.info.cta_tile_q == kLargeTile) return run_tile<kLargeTile, kMask>(stream);
    }
    return run_tile<kSmallTile, kMask>(stream);
}

template <class T, std::uint32_t kHeadDim, class Cache>
void DecodeOnTensorCores<T, kHeadDim, Cache>::enqueue(cudaStream_t stream) {
    using flashinfer::MaskMode;
    cudaError_t status;
    // One query sees all; over FP8 there is one query.
    if constexpr (kFp8) {
        status = run<MaskMode::kNone>(stream);
    } else {
        status = causal_ ? run<MaskMode::kCausal>(stream) : run<MaskMode::kNone>(stream);
    }
    device::check(status, "FlashInfer's tensor-core decode");
}

}  // namespace fi
#endif
