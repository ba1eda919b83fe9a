// FlashInfer's plan for decode with latent attention, and what its two kernels share.
#pragma once

#include <flashinfer/attention/mask.cuh>
#include <flashinfer/attention/mla_params.cuh>
#include <flashinfer/attention/scheduler.cuh>

#include "Kernels/baselines/flashinfer/decode.h"
#include "Kernels/device/launch.h"

namespace fi {

constexpr std::uint32_t kLatent = 512;
constexpr std::uint32_t kRotary = 64;
constexpr std::uint32_t kRow = kLatent + kRotary;

// `Kernel` has a static run<mask>(params, blocks_x, blocks_y, stream) and a name.
template <class Kernel>
class MlaPlanned : public Planned {
  public:
    explicit MlaPlanned(const MlaDecode& call);
    void enqueue(cudaStream_t stream) override;

  private:
    using T = nv_bfloat16;
    using Params = flashinfer::MLAParams<T, T, T, std::int32_t>;

    void place(const MlaDecode& call);
    void place_schedule();

    PlanMemory memory_;
    flashinfer::MLAPlanInfo info_;
    Params params_ = {};
    bool causal_;
};

template <class Kernel>
MlaPlanned<Kernel>::MlaPlanned(const MlaDecode& call) : causal_(call.q_len > 1) {
    const std::size_t batch = call.lengths_on_host.size();
    std::vector<std::int32_t> q_starts(batch + 1);
    for (std::size_t i = 0; i <= batch; ++i) {
        q_starts[i] = static_cast<std::int32_t>(i * call.q_len);
    }
    memory_.run(*this, [&] {
        Scratch& scratch = *memory_.scratch;
        return flashinfer::MLAPlan<std::int32_t>(
            scratch.partials.address(), scratch.partials.bytes(), memory_.schedule.address(),
            scratch.pinned, memory_.schedule.bytes(), info_, q_starts.data(),
            const_cast<std::int32_t*>(call.page_indptr_on_host.data()),
            const_cast<std::int32_t*>(call.lengths_on_host.data()), batch, call.heads, kLatent,
            causal_, scratch.stream);
    });
    place(call);
    place_schedule();
    kernel = Kernel::kName;
}

template <class Kernel>
void MlaPlanned<Kernel>::place(const MlaDecode& call) {
    const auto input = [](const void* address) {
        return static_cast<T*>(const_cast<void*>(address));
    };
    params_.q_nope = input(call.q_nope);
    params_.q_pe = input(call.q_pe);
    params_.ckv = input(call.latent_pages);
    params_.kpe = input(call.rotary_pages);
    params_.kv_indices = const_cast<std::int32_t*>(call.page_indices);
    params_.final_o = static_cast<T*>(call.out);
    params_.final_lse = nullptr;
    params_.num_heads = flashinfer::uint_fastdiv(call.heads);
    params_.block_size = flashinfer::uint_fastdiv(call.page_size);
    // The parts of a query and of a token are views of one row.
    params_.q_nope_stride_n = params_.q_pe_stride_n = call.heads * kRow;
    params_.q_nope_stride_h = params_.q_pe_stride_h = kRow;
    params_.ckv_stride_page = params_.kpe_stride_page = call.page_size * kRow;
    params_.ckv_stride_n = params_.kpe_stride_n = kRow;
    params_.o_stride_n = call.heads * kLatent;
    params_.o_stride_h = kLatent;
    params_.sm_scale = call.scale;
    params_.return_lse_base_on_e = false;
}

template <class Kernel>
void MlaPlanned<Kernel>::place_schedule() {
    const auto scheduled = [&](std::int64_t offset) {
        return flashinfer::GetPtrFromBaseOffset<std::int32_t>(memory_.schedule.address(), offset);
    };
    params_.q_indptr = scheduled(info_.q_indptr_offset);
    params_.kv_indptr = scheduled(info_.kv_indptr_offset);
    params_.partial_indptr = scheduled(info_.partial_indptr_offset);
    params_.q_len = scheduled(info_.q_len_offset);
    params_.kv_len = scheduled(info_.kv_len_offset);
    params_.q_start = scheduled(info_.q_start_offset);
    params_.kv_start = scheduled(info_.kv_start_offset);
    params_.kv_end = scheduled(info_.kv_end_offset);
    params_.work_indptr = scheduled(info_.work_indptr_offset);
    params_.merge_packed_offset_start = scheduled(info_.merge_packed_offset_start_offset);
    params_.merge_packed_offset_end = scheduled(info_.merge_packed_offset_end_offset);
    params_.merge_partial_packed_offset_start =
        scheduled(info_.merge_partial_packed_offset_start_offset);
    params_.merge_partial_packed_offset_end =
        scheduled(info_.merge_partial_packed_offset_end_offset);
    params_.merge_partial_stride = scheduled(info_.merge_partial_stride_offset);
    void* partials = memory_.scratch->partials.address();
    params_.partial_o = flashinfer::GetPtrFromBaseOffset<T>(partials, info_.partial_o_offset);
    params_.partial_lse =
        flashinfer::GetPtrFromBaseOffset<float>(partials, info_.partial_lse_offset);
}

template <class Kernel>
void MlaPlanned<Kernel>::enqueue(cudaStream_t stream) {
    using flashinfer::MaskMode;
    const auto [x, y] = std::pair(info_.num_blks_x, info_.num_blks_y);
    device::check(causal_ ? Kernel::template run<MaskMode::kCausal>(params_, x, y, stream)
                          : Kernel::template run<MaskMode::kNone>(params_, x, y, stream),
                  Kernel::kName);
}

}  // namespace fi
