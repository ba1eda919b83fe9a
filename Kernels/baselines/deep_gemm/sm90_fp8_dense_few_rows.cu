#include "Kernels/baselines/deep_gemm/sm90_fp8.cuh"

namespace deep_gemm_baseline {
namespace {

// What the suites need: kind, n and k (0: any), groups (masked only), tile, stages, cluster.
constexpr Compiled kTable[] = {
    compiled_fp8<Kind::kDense, 0, 0, 1, 16, 32, 16, 1, 1>(),
    compiled_fp8<Kind::kDense, 0, 0, 1, 16, 48, 16, 1, 1>(),
    compiled_fp8<Kind::kDense, 0, 0, 1, 16, 64, 16, 1, 1>(),
    compiled_fp8<Kind::kDense, 0, 0, 1, 16, 80, 16, 1, 1>(),
    compiled_fp8<Kind::kDense, 0, 0, 1, 16, 112, 13, 2, 1>(),
    compiled_fp8<Kind::kDense, 0, 0, 1, 16, 160, 10, 2, 1>(),
    compiled_fp8<Kind::kDense, 0, 0, 1, 64, 16, 16, 1, 1>(),
    compiled_fp8<Kind::kDense, 0, 0, 1, 64, 32, 16, 1, 1>(),
    compiled_fp8<Kind::kDense, 0, 0, 1, 64, 64, 13, 1, 1>(),
    compiled_fp8<Kind::kDense, 0, 0, 1, 64, 96, 10, 2, 1>(),
    compiled_fp8<Kind::kDense, 0, 0, 1, 64, 112, 9, 1, 1>(),
    compiled_fp8<Kind::kDense, 0, 0, 1, 64, 128, 8, 1, 1>(),
    compiled_fp8<Kind::kDense, 0, 0, 1, 64, 128, 8, 2, 1>(),
};

}  // namespace

Launch find_fp8_dense_few_rows(const Problem& problem, const Config& config) {
    return find(kTable, problem, config);
}

}  // namespace deep_gemm_baseline
