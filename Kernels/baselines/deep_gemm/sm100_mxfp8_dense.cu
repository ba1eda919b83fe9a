#include "Kernels/baselines/deep_gemm/sm100_dense.cuh"

namespace deep_gemm_baseline {

Launch find_sm100_mxfp8_dense(const Problem& problem, const Config& config) {
    return find(kDenseTable<Operands::kMxfp8>, problem, config);
}

}  // namespace deep_gemm_baseline
