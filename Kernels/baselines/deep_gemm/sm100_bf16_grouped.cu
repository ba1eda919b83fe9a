#include <deep_gemm/impls/sm100_bf16_gemm.cuh>

#include "Kernels/baselines/deep_gemm/kernel.cuh"

namespace deep_gemm_baseline {
namespace {

template <int kMultiprocessors, Kind kKind, int kN, int kK, int kGroups>
void launch_bf16(const Gemm& gemm, const Config& config, cudaStream_t stream) {
    constexpr int kTile = 128, kTileK = 64, kStages = 9, kThreads = 128, kMulticast = 2;
    constexpr int kTensorCorePercent = 100;
    const auto kernel = deep_gemm::sm100_bf16_gemm_impl<
        cute::UMMA::Major::K, cute::UMMA::Major::K, 0, kN, kK, kTile, kTile, kTileK, kGroups, 128,
        128, 128, kStages, kThreads, kThreads, kMulticast, true, kMultiprocessors, 128, true, true,
        kernel_type(kKind), false, cutlass::bfloat16_t, deep_gemm::epilogue::operators::Identity,
        kTensorCorePercent>;
    const Problem& problem = gemm.problem;
    const cuuint64_t k = problem.k;
    const cuuint64_t all_columns = static_cast<cuuint64_t>(problem.groups) * problem.n;
    const Matrix a = {CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, gemm.a, k, all_rows(problem)};
    const Matrix b = {CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, gemm.b, k, all_columns};
    device::launch("deep_gemm bf16", kernel, launch_shape(config, kMultiprocessors), stream,
                   gemm.index, problem.m, problem.n, problem.k, deep_gemm::EpilogueOperatorArgs{},
                   tensor_map(a, kTileK, kTile / kMulticast, 128),
                   tensor_map(b, kTileK, kTile, 128), map_of_out(gemm, config));
}

template <int kMultiprocessors, Kind kKind, int kN, int kK, int kGroups>
constexpr Compiled compiled() {
    return {kKind, kN, kK, kGroups, 128,
            128,   9,  1,  2,       launch_bf16<kMultiprocessors, kKind, kN, kK, kGroups>,
            true};
}

// What the suites need: kind, n, k, groups (masked only).
template <int kMultiprocessors>
constexpr Compiled kTable[] = {
    compiled<kMultiprocessors, Kind::kContiguous, 4096, 7168, 1>(),
    compiled<kMultiprocessors, Kind::kContiguous, 7168, 2048, 1>(),
    compiled<kMultiprocessors, Kind::kMasked, 4096, 7168, 8>(),
    compiled<kMultiprocessors, Kind::kMasked, 4096, 7168, 64>(),
    compiled<kMultiprocessors, Kind::kMasked, 7168, 2048, 32>(),
};

}  // namespace

Launch find_sm100_bf16_grouped(const Problem& problem, const Config& config, const Target& target) {
    return target.multiprocessors == kGb200.multiprocessors
               ? find(kTable<kGb200.multiprocessors>, problem, config)
               : find(kTable<kB200.multiprocessors>, problem, config);
}

}  // namespace deep_gemm_baseline
