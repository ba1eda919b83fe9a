#include "Kernels/baselines/flashinfer/bridge.h"

#include <stdexcept>
#include <string>

#include "Kernels/baselines/flashinfer/decode.h"
#include "Kernels/baselines/flashinfer/lib.rs.h"
#include "Kernels/baselines/flashinfer/prefill.h"
#include "Kernels/bridge/convert.h"

namespace fi::bridge {
namespace {

using device::pointer;

Type type(Dtype dtype) {
    switch (dtype) {
        case Dtype::F16:
            return Type::kF16;
        case Dtype::Bf16:
            return Type::kBf16;
    }
    throw std::invalid_argument("unknown dtype");
}

fi::PrefillKernel prefill_kernel(PrefillKernel kernel) {
    switch (kernel) {
        case PrefillKernel::Fa2:
            return fi::PrefillKernel::kFa2;
        case PrefillKernel::Fa3:
            return fi::PrefillKernel::kFa3;
        case PrefillKernel::Cutlass:
            return fi::PrefillKernel::kCutlass;
    }
    throw std::invalid_argument("unknown prefill kernel");
}

fi::DecodeKernel decode_kernel(DecodeKernel kernel) {
    switch (kernel) {
        case DecodeKernel::CudaCores:
            return fi::DecodeKernel::kCudaCores;
        case DecodeKernel::TensorCores:
            return fi::DecodeKernel::kTensorCores;
    }
    throw std::invalid_argument("unknown decode kernel");
}

fi::MlaKernel mla_kernel(MlaKernel kernel) {
    switch (kernel) {
        case MlaKernel::Fa2:
            return fi::MlaKernel::kFa2;
        case MlaKernel::Hopper:
            return fi::MlaKernel::kHopper;
    }
    throw std::invalid_argument("unknown MLA kernel");
}

}  // namespace

void enqueue(Planned& planned, std::size_t stream) {
    planned.enqueue(pointer<CUstream_st>(stream));
}

double plan_microseconds(const Planned& planned) { return planned.microseconds; }

rust::String kernel_name(const Planned& planned) { return planned.kernel; }

bool has_prefill(PrefillKernel kernel, Dtype dtype, std::uint32_t head_dim,
                 std::uint32_t value_dim) {
    return fi::has_prefill(prefill_kernel(kernel), type(dtype), head_dim, value_dim);
}

RaggedPrefill ragged_prefill(const Prefill& call, rust::Slice<const std::int32_t> q_starts,
                             rust::Slice<const std::int32_t> kv_starts) {
    RaggedPrefill params = {};
    params.q = pointer<void>(call.q);
    params.k = pointer<void>(call.k);
    params.v = pointer<void>(call.v);
    params.out = pointer<void>(call.out);
    params.q_starts = pointer<std::int32_t>(call.cu_q);
    params.kv_starts = pointer<std::int32_t>(call.cu_kv);
    params.q_starts_on_host.assign(q_starts.begin(), q_starts.end());
    params.kv_starts_on_host.assign(kv_starts.begin(), kv_starts.end());
    params.q_heads = call.heads;
    params.kv_heads = call.kv_heads;
    params.head_dim = call.head_dim;
    params.value_dim = call.value_dim;
    params.type = type(call.dtype);
    params.causal = call.causal;
    params.scale = call.scale;
    return params;
}

std::unique_ptr<Planned> plan_prefill(PrefillKernel kernel, const Prefill& call,
                                      rust::Slice<const std::int32_t> q_starts,
                                      rust::Slice<const std::int32_t> kv_starts) {
    return fi::plan_prefill(prefill_kernel(kernel), ragged_prefill(call, q_starts, kv_starts));
}

bool has_decode(DecodeKernel kernel, Dtype dtype, std::uint32_t head_dim, bool fp8_cache) {
    return fi::has_decode(decode_kernel(kernel), type(dtype), head_dim, fp8_cache);
}

PagedDecode paged_decode(const Decode& call) {
    PagedDecode params = {};
    params.q = pointer<void>(call.q);
    params.k_pages = pointer<void>(call.k_pages);
    params.v_pages = pointer<void>(call.v_pages);
    params.out = pointer<void>(call.out);
    params.page_indptr = pointer<std::int32_t>(call.page_indptr);
    params.page_indices = pointer<std::int32_t>(call.page_indices);
    params.last_page_lengths = pointer<std::int32_t>(call.last_page_lengths);
    params.q_len = call.q_len;
    params.heads = call.heads;
    params.kv_heads = call.kv_heads;
    params.head_dim = call.head_dim;
    params.page_size = call.page_size;
    params.heads_first = call.heads_first;
    params.type = type(call.dtype);
    params.fp8_cache = call.fp8_cache;
    params.scale = call.scale;
    params.v_scale = call.v_scale;
    return params;
}

fi::PageTable page_table(const PageTable& pages) {
    const auto copied = [](rust::Slice<const std::int32_t> numbers) {
        return std::vector<std::int32_t>(numbers.begin(), numbers.end());
    };
    return {pointer<std::int32_t>(pages.lengths_address),
            copied(pages.lengths),
            copied(pages.indptr),
            copied(pages.indices),
            pages.page_size,
            pages.pool_pages};
}

std::unique_ptr<Planned> plan_decode(DecodeKernel kernel, const Decode& call,
                                     rust::Slice<const std::int32_t> page_starts) {
    PagedDecode params = paged_decode(call);
    params.page_indptr_on_host.assign(page_starts.begin(), page_starts.end());
    return fi::plan_decode(decode_kernel(kernel), params);
}

bool has_mla_decode(MlaKernel kernel) { return fi::has_mla_decode(mla_kernel(kernel)); }

std::unique_ptr<Planned> plan_mla_decode(MlaKernel kernel, const MlaDecode& call,
                                         rust::Slice<const std::int32_t> page_starts,
                                         rust::Slice<const std::int32_t> lengths) {
    fi::MlaDecode params = {};
    // The rotary part follows the latent one in the same row.
    constexpr std::size_t kLatentBytes = 512 * 2;
    params.q_nope = pointer<void>(call.q);
    params.q_pe = pointer<void>(call.q + kLatentBytes);
    params.latent_pages = pointer<void>(call.cache);
    params.rotary_pages = pointer<void>(call.cache + kLatentBytes);
    params.out = pointer<void>(call.out);
    params.page_indices = pointer<std::int32_t>(call.page_indices);
    params.page_indptr_on_host.assign(page_starts.begin(), page_starts.end());
    params.lengths_on_host.assign(lengths.begin(), lengths.end());
    params.q_len = call.q_len;
    params.heads = call.heads;
    params.page_size = call.page_size;
    params.scale = call.scale;
    return fi::plan_mla_decode(mla_kernel(kernel), params);
}

}  // namespace fi::bridge
