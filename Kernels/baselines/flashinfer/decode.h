// Decode over a paged cache with FlashInfer's kernels.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "Kernels/baselines/flashinfer/planned.h"
#include "Kernels/baselines/flashinfer/type.h"

namespace fi {

// Queries and outputs are dense [batch, q_len, heads, head_dim]. Query i of q_len sees all but the
// last q_len - 1 - i tokens of its sequence. The pages of sequence s are
// page_indices[page_indptr[s]] and following.
struct PagedDecode {
    const void* q;
    const void* k_pages;
    const void* v_pages;
    void* out;
    const std::int32_t* page_indptr;        // on the device
    const std::int32_t* page_indices;       // on the device
    const std::int32_t* last_page_lengths;  // on the device
    std::vector<std::int32_t> page_indptr_on_host;
    std::uint32_t q_len;
    std::uint32_t heads;
    std::uint32_t kv_heads;
    std::uint32_t head_dim;
    std::uint32_t page_size;
    bool heads_first;  // pages are [kv_heads, page_size, head_dim], else [page_size, kv_heads, ...]
    Type type;
    bool fp8_cache;  // keys and values are e4m3 instead of `type`
    float scale;     // of scores, including the scale of FP8 keys
    float v_scale;   // of FP8 values
};

enum class DecodeKernel : std::uint8_t { kCudaCores, kTensorCores };

// Whether this build has the kernel for this type, head size and cache. On tensor cores, at most 64
// query rows (queries times heads) share a KV head; over FP8 16, from one query.
bool has_decode(DecodeKernel kernel, Type type, std::uint32_t head_dim, bool fp8_cache);

// Throws if the library refuses or this build has no such kernel.
std::unique_ptr<Planned> plan_decode(DecodeKernel kernel, const PagedDecode& call);

// All heads share one cache with a latent row of 512 and a rotary row of 64 per token; bf16.
// Queries and outputs are [batch, q_len, heads, ...]; queries see the same tokens as above.
struct MlaDecode {
    const void* q_nope;
    const void* q_pe;
    const void* latent_pages;
    const void* rotary_pages;
    void* out;
    const std::int32_t* page_indices;  // on the device
    std::vector<std::int32_t> page_indptr_on_host;
    std::vector<std::int32_t> lengths_on_host;
    std::uint32_t q_len;
    std::uint32_t heads;
    std::uint32_t page_size;
    float scale;
};

enum class MlaKernel : std::uint8_t { kFa2, kHopper };

bool has_mla_decode(MlaKernel kernel);
std::unique_ptr<Planned> plan_mla_decode(MlaKernel kernel, const MlaDecode& call);

}  // namespace fi
