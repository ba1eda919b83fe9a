// Shared by FlashInfer's FA2 kernels over ragged tensors and over pages: the library's plan, and
// its location on the device.
#pragma once

#include "Kernels/baselines/flashinfer/fa2_tiles.cuh"
// The library's own headers need this order.
#include <flashinfer/attention/default_prefill_params.cuh>
#include <flashinfer/attention/prefill.cuh>
#include <flashinfer/attention/scheduler.cuh>
#include <flashinfer/attention/variants.cuh>
#include <string>
#include <vector>

#include "Kernels/baselines/flashinfer/planned.h"

namespace fi {

using Fa2Variant = flashinfer::DefaultAttention</*use_custom_mask=*/false,
                                                /*use_sliding_window=*/false,
                                                /*use_logits_soft_cap=*/false,
                                                /*use_alibi=*/false>;

struct Fa2Batch {
    // Where each request starts, and the end: in queries, and in pages.
    const std::vector<std::int32_t>& q_starts;
    const std::vector<std::int32_t>& kv_starts;
    std::uint32_t heads;
    std::uint32_t kv_heads;
    std::uint32_t head_dim;
    std::uint32_t value_dim;
    // Tokens per page: 1 for ragged tensors.
    std::uint32_t page_size;
};

// T is the output type.
template <class T>
struct Fa2Plan {
    // Records time and kernel in `planned`.
    void make(Planned& planned, const char* kernel, const Fa2Batch& batch);

    // Points the kernel's parameters at the plan.
    template <class Params>
    void place(Params& params);

    PlanMemory memory;
    flashinfer::PrefillPlanInfo info;
    // Null if KV is not split.
    T* partial_out = nullptr;
    float* partial_lse = nullptr;
};

template <class T>
void Fa2Plan<T>::make(Planned& planned, const char* kernel, const Fa2Batch& batch) {
    memory.run(planned, [&] {
        Scratch& scratch = *memory.scratch;
        return flashinfer::PrefillPlan<std::int32_t>(
            scratch.partials.address(), scratch.partials.bytes(), memory.schedule.address(),
            scratch.pinned, memory.schedule.bytes(), info,
            const_cast<std::int32_t*>(batch.q_starts.data()),
            const_cast<std::int32_t*>(batch.kv_starts.data()), batch.q_starts.back(),
            batch.q_starts.size() - 1, batch.heads, batch.kv_heads, batch.head_dim, batch.value_dim,
            batch.page_size, /*enable_cuda_graph=*/false, sizeof(T), /*window_left=*/-1,
            /*fixed_split_size=*/-1, /*disable_split_kv=*/false, /*num_colocated_ctas=*/0,
            scratch.stream);
    });
    planned.kernel = std::string(kernel) + ", CTA_TILE_Q " + std::to_string(info.cta_tile_q) +
                     (info.split_kv ? ", split KV and merge" : "");
}

template <class T>
template <class Params>
void Fa2Plan<T>::place(Params& params) {
    const auto scheduled = [&](std::int64_t offset) {
        return flashinfer::GetPtrFromBaseOffset<std::int32_t>(memory.schedule.address(), offset);
    };
    params.request_indices = scheduled(info.request_indices_offset);
    params.qo_tile_indices = scheduled(info.qo_tile_indices_offset);
    params.kv_tile_indices = scheduled(info.kv_tile_indices_offset);
    params.o_indptr = scheduled(info.o_indptr_offset);
    params.kv_chunk_size_ptr = scheduled(info.kv_chunk_size_ptr_offset);
    params.padded_batch_size = info.padded_batch_size;
    params.max_total_num_rows = info.total_num_rows;
    if (info.split_kv) {
        void* partials = memory.scratch->partials.address();
        params.merge_indptr = scheduled(info.merge_indptr_offset);
        partial_out = flashinfer::GetPtrFromBaseOffset<T>(partials, info.v_offset);
        partial_lse = flashinfer::GetPtrFromBaseOffset<float>(partials, info.s_offset);
    }
}

}  // namespace fi
