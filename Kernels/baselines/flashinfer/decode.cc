#include "Kernels/baselines/flashinfer/decode.h"

#include <initializer_list>
#include <stdexcept>
#include <string>

namespace fi {

using Plan = std::unique_ptr<Planned>(const PagedDecode&);
using PlanMla = std::unique_ptr<Planned>(const MlaDecode&);

// One per translation unit.
#ifdef FLASHINFER_PORTABLE
Plan plan_decode_cuda_cores_bf16_d64, plan_decode_cuda_cores_bf16_d128;
Plan plan_decode_tensor_cores_bf16_d64, plan_decode_tensor_cores_bf16_d128;
Plan plan_decode_tensor_cores_f16_d128, plan_decode_tensor_cores_bf16_fp8_d128;
PlanMla plan_mla_fa2;
#endif
#ifdef FLASHINFER_SM90A
PlanMla plan_mla_hopper;
#endif

namespace {

struct Entry {
    DecodeKernel kernel;
    Type type;
    std::uint32_t head_dim;
    bool fp8_cache;
    Plan* plan;
};

constexpr std::initializer_list<Entry> kEntries = {
#ifdef FLASHINFER_PORTABLE
    {DecodeKernel::kCudaCores, Type::kBf16, 64, false, plan_decode_cuda_cores_bf16_d64},
    {DecodeKernel::kCudaCores, Type::kBf16, 128, false, plan_decode_cuda_cores_bf16_d128},
    {DecodeKernel::kTensorCores, Type::kBf16, 64, false, plan_decode_tensor_cores_bf16_d64},
    {DecodeKernel::kTensorCores, Type::kBf16, 128, false, plan_decode_tensor_cores_bf16_d128},
    {DecodeKernel::kTensorCores, Type::kF16, 128, false, plan_decode_tensor_cores_f16_d128},
    {DecodeKernel::kTensorCores, Type::kBf16, 128, true, plan_decode_tensor_cores_bf16_fp8_d128},
#endif
};

Plan* find(DecodeKernel kernel, Type type, std::uint32_t head_dim, bool fp8_cache) {
    for (const Entry& entry : kEntries) {
        if (entry.kernel == kernel && entry.type == type && entry.head_dim == head_dim &&
            entry.fp8_cache == fp8_cache) {
            return entry.plan;
        }
    }
    return nullptr;
}

PlanMla* find(MlaKernel kernel) {
    switch (kernel) {
        case MlaKernel::kFa2:
#ifdef FLASHINFER_PORTABLE
            return plan_mla_fa2;
#else
            return nullptr;
#endif
        case MlaKernel::kHopper:
#ifdef FLASHINFER_SM90A
            return plan_mla_hopper;
#else
            return nullptr;
#endif
    }
    return nullptr;
}

}  // namespace

bool has_decode(DecodeKernel kernel, Type type, std::uint32_t head_dim, bool fp8_cache) {
    return find(kernel, type, head_dim, fp8_cache) != nullptr;
}

std::unique_ptr<Planned> plan_decode(DecodeKernel kernel, const PagedDecode& call) {
    if (call.page_indptr_on_host.size() < 2) throw std::invalid_argument("no sequence");
    Plan* plan = find(kernel, call.type, call.head_dim, call.fp8_cache);
    if (plan == nullptr) {
        throw std::invalid_argument("this build has no such decode kernel for a head size of " +
                                    std::to_string(call.head_dim));
    }
    return plan(call);
}

bool has_mla_decode(MlaKernel kernel) { return find(kernel) != nullptr; }

std::unique_ptr<Planned> plan_mla_decode(MlaKernel kernel, const MlaDecode& call) {
    const std::size_t batch = call.lengths_on_host.size();
    if (batch == 0 || call.page_indptr_on_host.size() != batch + 1) {
        throw std::invalid_argument(
            std::to_string(batch) + " lengths and " +
            std::to_string(call.page_indptr_on_host.size()) +
            " page offsets; expected one more than lengths, and at least one length");
    }
    PlanMla* plan = find(kernel);
    if (plan == nullptr) throw std::invalid_argument("this build has no such kernel");
    return plan(call);
}

}  // namespace fi
