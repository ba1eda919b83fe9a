#include "Kernels/baselines/deep_gemm/gemm.h"

namespace deep_gemm_baseline {

Launch find_kernel(const Problem& problem, const Config& config, const Target& target) {
    [[maybe_unused]] const bool is_fp8 = problem.operands == Operands::kFp8;
#ifdef DEEP_GEMM_WITH_SM90
    if (target.major == kSm90.major) {
        const bool few = config.block_m <= 64;
        if (problem.kind != Kind::kDense) {
            return is_fp8 ? find_fp8_grouped(problem, config) : find_bf16_grouped(problem, config);
        }
        if (is_fp8) {
            return few ? find_fp8_dense_few_rows(problem, config)
                       : find_fp8_dense_many_rows(problem, config);
        }
        return few ? find_bf16_dense_few_rows(problem, config)
                   : find_bf16_dense_many_rows(problem, config);
    }
#endif
#ifdef DEEP_GEMM_WITH_SM100
    if (target.major == kB200.major) {
        if (problem.kind == Kind::kDense) {
            const bool is_bf16 = problem.operands == Operands::kBf16;
            if (is_bf16 || target.multiprocessors != kB200.multiprocessors) return nullptr;
            return is_fp8 ? find_sm100_fp8_dense(problem, config)
                          : find_sm100_mx_dense(problem, config);
        }
        return is_fp8 ? find_sm100_fp8_grouped(problem, config, target)
                      : find_sm100_bf16_grouped(problem, config, target);
    }
#endif
    static_cast<void>(problem);
    static_cast<void>(config);
    static_cast<void>(target);
    return nullptr;
}

}  // namespace deep_gemm_baseline
