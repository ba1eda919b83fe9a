#include "Kernels/baselines/deep_gemm/sm100_dense.cuh"

namespace deep_gemm_baseline {
namespace {

// Narrow and wide tiles of one block and of pairs; all others are built on demand.
template <Operands kOperands>
constexpr Compiled kMxTable[] = {
    dense<kOperands, 64, 16, 1, 1, false>(),  dense<kOperands, 128, 16, 2, 1, false>(),
    dense<kOperands, 128, 64, 2, 1, false>(), dense<kOperands, 128, 256, 2, 1, false>(),
    dense<kOperands, 16, 128, 1, 1, true>(),  dense<kOperands, 32, 128, 1, 2, true>(),
    dense<kOperands, 240, 128, 1, 2, true>(),
};

}  // namespace

Launch find_sm100_mx_dense(const Problem& problem, const Config& config) {
    return problem.operands == Operands::kMxfp4 ? find(kMxTable<Operands::kMxfp4>, problem, config)
                                                : find(kMxTable<Operands::kMxfp8>, problem, config);
}

}  // namespace deep_gemm_baseline
