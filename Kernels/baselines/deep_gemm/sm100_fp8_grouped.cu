#include <deep_gemm/impls/sm100_fp8_fp4_gemm_1d1d.cuh>

#include "Kernels/baselines/deep_gemm/kernel.cuh"

namespace deep_gemm_baseline {
namespace {

template <int kMultiprocessors, Kind kKind, int kN, int kK, int kGroups>
void launch_fp8(const Gemm& gemm, const Config& config, cudaStream_t stream) {
    using Operand = cutlass::float_e4m3_t;
    constexpr int kTile = 128, kStages = 8, kStoreStages = 2, kThreads = 128, kMulticast = 2;
    const auto kernel = deep_gemm::sm100_fp8_fp4_gemm_1d1d_impl<
        cute::UMMA::Major::K, cute::UMMA::Major::K, 128, 128, 128, 0, kN, kK, kTile, kTile, kTile,
        kGroups, 128, 128, 128, kStages, kStoreStages, kThreads, kThreads, kMulticast, true,
        kMultiprocessors, true, true, kernel_type(kKind), false, Operand, Operand,
        cutlass::bfloat16_t, deep_gemm::epilogue::operators::Identity>;
    const Problem& problem = gemm.problem;
    const cuuint64_t k = problem.k;
    const cuuint64_t groups = problem.groups;
    const cuuint64_t words = (k + 511) / 512;
    const cuuint64_t rooms = kKind == Kind::kMasked ? groups : 1;
    const auto up_to_4 = [](int value) { return (static_cast<cuuint64_t>(value) + 3) / 4 * 4; };
    const Matrix a = {CU_TENSOR_MAP_DATA_TYPE_UINT8, 1, gemm.a, k, all_rows(problem)};
    const Matrix b = {CU_TENSOR_MAP_DATA_TYPE_UINT8, 1, gemm.b, k, groups * problem.n};
    const Matrix a_scales = {CU_TENSOR_MAP_DATA_TYPE_INT32, 4, gemm.a_scales, up_to_4(problem.m),
                             words * rooms};
    const Matrix b_scales = {CU_TENSOR_MAP_DATA_TYPE_INT32, 4, gemm.b_scales, up_to_4(problem.n),
                             words * groups};
    device::launch("deep_gemm fp8", kernel, launch_shape(config, kMultiprocessors), stream,
                   gemm.index, problem.m, problem.n, problem.k, deep_gemm::EpilogueOperatorArgs{},
                   tensor_map(a, kTile, kTile / kMulticast, 128), tensor_map(b, kTile, kTile, 128),
                   tensor_map(a_scales, kTile, 1, 0), tensor_map(b_scales, kTile, 1, 0),
                   map_of_out(gemm, config));
}

template <int kMultiprocessors, Kind kKind, int kN, int kK, int kGroups>
constexpr Compiled compiled() {
    return {kKind, kN, kK, kGroups, 128,
            128,   8,  1,  2,       launch_fp8<kMultiprocessors, kKind, kN, kK, kGroups>};
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

Launch find_sm100_fp8_grouped(const Problem& problem, const Config& config, const Target& target) {
    return target.multiprocessors == kGb200.multiprocessors
               ? find(kTable<kGb200.multiprocessors>, problem, config)
               : find(kTable<kB200.multiprocessors>, problem, config);
}

}  // namespace deep_gemm_baseline
