#include "Kernels/baselines/deep_gemm/sm90_fp8.cuh"

namespace deep_gemm_baseline {
namespace {

// What the suites need: kind, n and k (0: any), groups (masked only), tile, stages, cluster.
constexpr Compiled kTable[] = {
    compiled_fp8<Kind::kContiguous, 4096, 7168, 1, 128, 32, 10, 1, 1>(),
    compiled_fp8<Kind::kContiguous, 4096, 7168, 1, 128, 128, 5, 1, 2>(),
    compiled_fp8<Kind::kContiguous, 4096, 7168, 1, 128, 160, 5, 2, 1>(),
    compiled_fp8<Kind::kContiguous, 4096, 7168, 1, 128, 192, 4, 2, 1>(),
    compiled_fp8<Kind::kContiguous, 7168, 2048, 1, 128, 64, 8, 1, 1>(),
    compiled_fp8<Kind::kContiguous, 7168, 2048, 1, 128, 160, 5, 2, 1>(),
    compiled_fp8<Kind::kContiguous, 7168, 2048, 1, 128, 192, 4, 2, 1>(),
    compiled_fp8<Kind::kMasked, 4096, 7168, 8, 64, 128, 8, 2, 1>(),
    compiled_fp8<Kind::kMasked, 4096, 7168, 8, 128, 192, 4, 2, 1>(),
    compiled_fp8<Kind::kMasked, 4096, 7168, 64, 64, 192, 6, 2, 1>(),
    compiled_fp8<Kind::kMasked, 7168, 2048, 32, 64, 192, 6, 2, 1>(),
};

}  // namespace

Launch find_fp8_grouped(const Problem& problem, const Config& config) {
    return find(kTable, problem, config);
}

}  // namespace deep_gemm_baseline
