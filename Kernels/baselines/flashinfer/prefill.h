// Ragged prefill with FlashInfer's kernels.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "Kernels/baselines/flashinfer/planned.h"
#include "Kernels/baselines/flashinfer/type.h"

namespace fi {

// Dense [tokens, heads, head_dim] tensors, and [tokens, heads, value_dim]; request i has the rows
// from starts[i] to starts[i + 1]. With `causal`, the last query of a request sees all its keys.
struct RaggedPrefill {
    const void* q;
    const void* k;
    const void* v;
    void* out;
    const std::int32_t* q_starts;   // on the device
    const std::int32_t* kv_starts;  // on the device
    std::vector<std::int32_t> q_starts_on_host;
    std::vector<std::int32_t> kv_starts_on_host;
    std::uint32_t q_heads;
    std::uint32_t kv_heads;
    std::uint32_t head_dim;
    std::uint32_t value_dim;
    Type type;
    bool causal;
    float scale;
};

enum class PrefillKernel : std::uint8_t { kFa2, kFa3, kCutlass };

// Whether this build has the kernel for this type and these sizes of heads.
bool has_prefill(PrefillKernel kernel, Type type, std::uint32_t head_dim, std::uint32_t value_dim);

// Throws if the library refuses or this build has no such kernel.
std::unique_ptr<Planned> plan_prefill(PrefillKernel kernel, const RaggedPrefill& call);

}  // namespace fi
