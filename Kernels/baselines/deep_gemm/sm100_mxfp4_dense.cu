#include "Kernels/baselines/deep_gemm/sm100_dense.cuh"

namespace deep_gemm_baseline {

Launch find_sm100_mxfp4_dense(const Problem& problem, const Config& config) {
    return find(kDenseTable<Operands::kMxfp4>, problem, config);
}

}  // namespace deep_gemm_baseline
