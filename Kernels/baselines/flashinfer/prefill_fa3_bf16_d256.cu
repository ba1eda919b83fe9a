#include "Kernels/baselines/flashinfer/prefill_fa3.cuh"

namespace fi {

std::unique_ptr<Planned> plan_prefill_fa3_bf16_d256(const RaggedPrefill& call) {
    return std::make_unique<PrefillFa3<cutlass::bfloat16_t, 256>>(call);
}

}  // namespace fi
