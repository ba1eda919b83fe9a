#include "Kernels/baselines/deep_gemm/sm90_fp8.cuh"

namespace deep_gemm_baseline {
namespace {

// What the suites need: kind, n and k (0: any), groups (masked only), tile, stages, cluster.
constexpr Compiled kTable[] = {
    compiled_fp8<Kind::kDense, 0, 0, 1, 128, 128, 5, 1, 1>(),
    compiled_fp8<Kind::kDense, 0, 0, 1, 128, 128, 5, 1, 2>(),
    compiled_fp8<Kind::kDense, 0, 0, 1, 128, 160, 5, 2, 1>(),
    compiled_fp8<Kind::kDense, 6144, 4096, 1, 128, 192, 4, 1, 1>(),
    compiled_fp8<Kind::kDense, 24576, 1536, 1, 128, 192, 4, 1, 1>(),
    compiled_fp8<Kind::kDense, 0, 0, 1, 128, 192, 4, 2, 1>(),
    compiled_fp8<Kind::kDense, 0, 0, 1, 256, 112, 3, 1, 2>(),
    compiled_fp8<Kind::kDense, 2048, 2048, 1, 256, 128, 3, 1, 1>(),
    compiled_fp8<Kind::kDense, 8192, 28672, 1, 256, 128, 3, 1, 1>(),
    compiled_fp8<Kind::kDense, 0, 0, 1, 256, 128, 3, 1, 2>(),
};

}  // namespace

Launch find_fp8_dense_many_rows(const Problem& problem, const Config& config) {
    return find(kTable, problem, config);
}

}  // namespace deep_gemm_baseline
