#include "Kernels/baselines/deep_gemm/sm90_bf16.cuh"

namespace deep_gemm_baseline {
namespace {

// What the suites need: kind, n and k (0: any), groups (masked only), tile, stages, cluster.
constexpr Compiled kTable[] = {
    compiled_bf16<Kind::kDense, 0, 0, 1, 128, 128, 6, 1, 1>(),
    compiled_bf16<Kind::kDense, 0, 0, 1, 128, 160, 5, 2, 1>(),
    compiled_bf16<Kind::kDense, 0, 0, 1, 128, 176, 4, 2, 1>(),
    compiled_bf16<Kind::kDense, 0, 0, 1, 128, 192, 4, 1, 1>(),
    compiled_bf16<Kind::kDense, 0, 0, 1, 128, 224, 3, 2, 1>(),
    compiled_bf16<Kind::kDense, 0, 0, 1, 128, 240, 3, 2, 1>(),
    compiled_bf16<Kind::kDense, 0, 0, 1, 128, 256, 3, 1, 1>(),
    compiled_bf16<Kind::kDense, 0, 0, 1, 256, 128, 3, 1, 2>(),
};

}  // namespace

Launch find_bf16_dense_many_rows(const Problem& problem, const Config& config) {
    return find(kTable, problem, config);
}

}  // namespace deep_gemm_baseline
