#include "Kernels/baselines/deep_gemm/gemm.h"

namespace deep_gemm_baseline {

Launch find_kernel(const Problem& problem, const Config& config, const Target& target) {
#ifdef DEEP_GEMM_WITH_SM90
    if (target.major == kSm90.major) {
        const bool few = config.block_m <= 64;
        if (problem.kind != Kind::kDense) {
            return problem.fp8 ? find_fp8_grouped(problem, config)
                               : find_bf16_grouped(problem, config);
        }
        if (problem.fp8) {
            return few ? find_fp8_dense_few_rows(problem, config)
                       : find_fp8_dense_many_rows(problem, config);
        }
        return few ? find_bf16_dense_few_rows(problem, config)
                   : find_bf16_dense_many_rows(problem, config);
    }
#endif
#ifdef DEEP_GEMM_WITH_SM100
    if (target.major == kB200.major && problem.kind != Kind::kDense) {
        return problem.fp8 ? find_sm100_fp8_grouped(problem, config, target)
                           : find_sm100_bf16_grouped(problem, config, target);
    }
#endif
    static_cast<void>(problem);
    static_cast<void>(config);
    static_cast<void>(target);
    return nullptr;
}

}  // namespace deep_gemm_baseline
