#include "Kernels/baselines/flashinfer/prefill_fa3.cuh"

namespace fi {

std::unique_ptr<Planned> plan_prefill_fa3_bf16_d192v128(const RaggedPrefill& call) {
    return std::make_unique<PrefillFa3<cutlass::bfloat16_t, 192, 128>>(call);
}

}  // namespace fi
