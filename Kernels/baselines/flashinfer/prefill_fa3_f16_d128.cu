#include "Kernels/baselines/flashinfer/prefill_fa3.cuh"

namespace fi {

std::unique_ptr<Planned> plan_prefill_fa3_f16_d128(const RaggedPrefill& call) {
    return std::make_unique<PrefillFa3<cutlass::half_t, 128>>(call);
}

}  // namespace fi
