// Decode with FlashInfer's XQA kernels: over bf16 or FP8 caches, for sizes that are compiled in.
#pragma once

#include <cstdint>
#include <memory>

#include "Kernels/baselines/flashinfer/decode.h"
#include "Kernels/baselines/flashinfer/page_rows.h"

namespace fi {

struct XqaSizes {
    bool fp8_cache;
    std::uint32_t head_dim;
    std::uint32_t group;  // query heads per KV head
    std::uint32_t page_size;
    std::uint32_t q_len;
};

// Whether this build has such a kernel; queries, and a cache that is not FP8, are bf16.
bool has_xqa(const XqaSizes& sizes);

// The page fields of `call` are not read. Throws if this build has no such kernel.
std::unique_ptr<Planned> plan_xqa(const PagedDecode& call, const PageTable& pages);

}  // namespace fi
