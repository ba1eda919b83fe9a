#include "Kernels/baselines/flashinfer/prefill_fa2.cuh"

namespace fi {

std::unique_ptr<Planned> plan_prefill_fa2_bf16_d192v128(const RaggedPrefill& call) {
    return std::make_unique<PrefillFa2<nv_bfloat16, 192, 128>>(call);
}

}  // namespace fi
