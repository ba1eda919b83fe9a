#include "Kernels/baselines/deep_gemm/sm100_dense.cuh"

namespace deep_gemm_baseline {
namespace {

// What the suites need.
constexpr Operands kFp8 = Operands::kFp8;
constexpr Compiled kTable[] = {
    dense<kFp8, 32, 16, 1, 1, false>(),   dense<kFp8, 32, 224, 1, 1, false>(),
    dense<kFp8, 64, 16, 1, 1, false>(),   dense<kFp8, 64, 192, 1, 1, false>(),
    dense<kFp8, 64, 224, 1, 1, false>(),  dense<kFp8, 128, 16, 1, 1, false>(),
    dense<kFp8, 128, 16, 2, 1, false>(),  dense<kFp8, 128, 64, 2, 1, false>(),
    dense<kFp8, 128, 128, 2, 1, false>(), dense<kFp8, 128, 160, 2, 1, false>(),
    dense<kFp8, 128, 192, 1, 1, false>(), dense<kFp8, 128, 224, 1, 1, false>(),
    dense<kFp8, 128, 224, 2, 1, false>(), dense<kFp8, 128, 256, 2, 1, false>(),
    dense<kFp8, 16, 128, 1, 1, true>(),   dense<kFp8, 16, 128, 1, 2, true>(),
    dense<kFp8, 32, 128, 1, 2, true>(),   dense<kFp8, 64, 128, 1, 2, true>(),
    dense<kFp8, 176, 128, 1, 2, true>(),  dense<kFp8, 192, 128, 1, 1, true>(),
    dense<kFp8, 240, 128, 1, 2, true>(),
};

}  // namespace

Launch find_sm100_fp8_dense(const Problem& problem, const Config& config) {
    return find(kTable, problem, config);
}

}  // namespace deep_gemm_baseline
