#include "Kernels/baselines/deep_gemm/sm90_bf16.cuh"

namespace deep_gemm_baseline {
namespace {

// What the suites need: kind, n and k (0: any), groups (masked only), tile, stages, cluster.
constexpr Compiled kTable[] = {
    compiled_bf16<Kind::kContiguous, 4096, 7168, 1, 128, 32, 10, 1, 1>(),
    compiled_bf16<Kind::kContiguous, 4096, 7168, 1, 128, 208, 4, 2, 1>(),
    compiled_bf16<Kind::kContiguous, 4096, 7168, 1, 128, 224, 3, 2, 1>(),
    compiled_bf16<Kind::kContiguous, 4096, 7168, 1, 128, 240, 3, 2, 1>(),
    compiled_bf16<Kind::kContiguous, 4096, 7168, 1, 128, 256, 3, 1, 1>(),
    compiled_bf16<Kind::kContiguous, 4096, 7168, 1, 128, 256, 3, 2, 1>(),
    compiled_bf16<Kind::kContiguous, 7168, 2048, 1, 128, 64, 8, 1, 1>(),
    compiled_bf16<Kind::kContiguous, 7168, 2048, 1, 128, 224, 3, 2, 1>(),
    compiled_bf16<Kind::kContiguous, 7168, 2048, 1, 128, 240, 3, 2, 1>(),
    compiled_bf16<Kind::kContiguous, 7168, 2048, 1, 128, 256, 3, 2, 1>(),
    compiled_bf16<Kind::kMasked, 4096, 7168, 8, 64, 128, 8, 2, 1>(),
    compiled_bf16<Kind::kMasked, 4096, 7168, 8, 128, 256, 3, 2, 1>(),
    compiled_bf16<Kind::kMasked, 4096, 7168, 64, 64, 256, 4, 2, 1>(),
    compiled_bf16<Kind::kMasked, 7168, 2048, 32, 64, 256, 4, 2, 1>(),
};

}  // namespace

Launch find_bf16_grouped(const Problem& problem, const Config& config) {
    return find(kTable, problem, config);
}

}  // namespace deep_gemm_baseline
