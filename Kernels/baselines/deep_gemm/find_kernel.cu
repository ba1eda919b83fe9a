#include "Kernels/baselines/deep_gemm/gemm.h"

namespace deep_gemm_baseline {

Launch find_kernel(const Problem& problem, const Config& config) {
#ifdef DEEP_GEMM_WITH_SM90
    if (problem.kind == Kind::kDense) {
        const bool few = config.block_m <= 64;
        if (problem.fp8) {
            return few ? find_fp8_dense_few_rows(problem, config)
                       : find_fp8_dense_many_rows(problem, config);
        }
        return few ? find_bf16_dense_few_rows(problem, config)
                   : find_bf16_dense_many_rows(problem, config);
    }
    return problem.fp8 ? find_fp8_grouped(problem, config) : find_bf16_grouped(problem, config);
#else
    static_cast<void>(problem);
    static_cast<void>(config);
    return nullptr;
#endif
}

}  // namespace deep_gemm_baseline
