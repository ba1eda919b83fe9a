#include "Kernels/baselines/flashinfer/mla_cutlass.h"

#include <stdexcept>
#include <string>

namespace fi {

std::unique_ptr<Planned> plan_mla_cutlass_sm100(const JoinedMla& step);

bool has_mla_cutlass() {
#ifdef FLASHINFER_SM100A
    return true;
#else
    return false;
#endif
}

std::unique_ptr<Planned> plan_mla_cutlass(const JoinedMla& step) {
    if (step.q_len != 1 || step.heads != 128) {
        throw std::invalid_argument(
            std::to_string(step.q_len) + " queries of " + std::to_string(step.heads) +
            " heads; FlashInfer's CUTLASS kernel supports one query of 128 heads");
    }
#ifdef FLASHINFER_SM100A
    return plan_mla_cutlass_sm100(step);
#else
    throw std::logic_error("this build has no code for sm_100a");
#endif
}

}  // namespace fi
