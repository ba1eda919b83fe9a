#include "Kernels/baselines/flashinfer/prefill_fa2.cuh"

namespace fi {

std::unique_ptr<Planned> plan_prefill_fa2_f16_d64(const RaggedPrefill& call) {
    return std::make_unique<PrefillFa2<half, 64>>(call);
}

}  // namespace fi
