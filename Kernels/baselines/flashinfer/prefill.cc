#include "Kernels/baselines/flashinfer/prefill.h"

#include <initializer_list>
#include <stdexcept>
#include <string>

namespace fi {

using Plan = std::unique_ptr<Planned>(const RaggedPrefill&);

// One per translation unit.
#ifdef FLASHINFER_PORTABLE
Plan plan_prefill_fa2_bf16_d64, plan_prefill_fa2_bf16_d128;
Plan plan_prefill_fa2_bf16_d192v128, plan_prefill_fa2_bf16_d256;
Plan plan_prefill_fa2_f16_d64, plan_prefill_fa2_f16_d128;
#endif
#ifdef FLASHINFER_SM90A
Plan plan_prefill_fa3_bf16_d64, plan_prefill_fa3_bf16_d128;
Plan plan_prefill_fa3_bf16_d192v128, plan_prefill_fa3_bf16_d256;
Plan plan_prefill_fa3_f16_d128;
#endif
#ifdef FLASHINFER_SM100A
Plan plan_prefill_cutlass_bf16_d128;
#endif

namespace {

struct Entry {
    PrefillKernel kernel;
    Type type;
    std::uint32_t head_dim;
    std::uint32_t value_dim;
    Plan* plan;
};

constexpr std::initializer_list<Entry> kEntries = {
#ifdef FLASHINFER_PORTABLE
    {PrefillKernel::kFa2, Type::kBf16, 64, 64, plan_prefill_fa2_bf16_d64},
    {PrefillKernel::kFa2, Type::kBf16, 128, 128, plan_prefill_fa2_bf16_d128},
    {PrefillKernel::kFa2, Type::kBf16, 192, 128, plan_prefill_fa2_bf16_d192v128},
    {PrefillKernel::kFa2, Type::kBf16, 256, 256, plan_prefill_fa2_bf16_d256},
    {PrefillKernel::kFa2, Type::kF16, 64, 64, plan_prefill_fa2_f16_d64},
    {PrefillKernel::kFa2, Type::kF16, 128, 128, plan_prefill_fa2_f16_d128},
#endif
#ifdef FLASHINFER_SM90A
    {PrefillKernel::kFa3, Type::kBf16, 64, 64, plan_prefill_fa3_bf16_d64},
    {PrefillKernel::kFa3, Type::kBf16, 128, 128, plan_prefill_fa3_bf16_d128},
    {PrefillKernel::kFa3, Type::kBf16, 192, 128, plan_prefill_fa3_bf16_d192v128},
    {PrefillKernel::kFa3, Type::kBf16, 256, 256, plan_prefill_fa3_bf16_d256},
    {PrefillKernel::kFa3, Type::kF16, 128, 128, plan_prefill_fa3_f16_d128},
#endif
#ifdef FLASHINFER_SM100A
    {PrefillKernel::kCutlass, Type::kBf16, 128, 128, plan_prefill_cutlass_bf16_d128},
#endif
};

Plan* find(PrefillKernel kernel, Type type, std::uint32_t head_dim, std::uint32_t value_dim) {
    for (const Entry& entry : kEntries) {
        if (entry.kernel == kernel && entry.type == type && entry.head_dim == head_dim &&
            entry.value_dim == value_dim) {
            return entry.plan;
        }
    }
    return nullptr;
}

}  // namespace

bool has_prefill(PrefillKernel kernel, Type type, std::uint32_t head_dim, std::uint32_t value_dim) {
    return find(kernel, type, head_dim, value_dim) != nullptr;
}

std::unique_ptr<Planned> plan_prefill(PrefillKernel kernel, const RaggedPrefill& call) {
    const auto& q_starts = call.q_starts_on_host;
    if (q_starts.size() < 2 || q_starts.size() != call.kv_starts_on_host.size()) {
        throw std::invalid_argument(
            std::to_string(q_starts.size()) + " and " +
            std::to_string(call.kv_starts_on_host.size()) +
            " starts of requests; expected one more than requests for both");
    }
    Plan* plan = find(kernel, call.type, call.head_dim, call.value_dim);
    if (plan == nullptr) {
        throw std::invalid_argument("this build has no such prefill kernel for head sizes of " +
                                    std::to_string(call.head_dim) + " and " +
                                    std::to_string(call.value_dim));
    }
    return plan(call);
}

}  // namespace fi
