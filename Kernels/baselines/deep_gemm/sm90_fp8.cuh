// DeepGEMM's FP8 kernel for sm_90a with its launch.
#pragma once

#include <deep_gemm/impls/sm90_fp8_gemm_1d2d.cuh>

#include "Kernels/baselines/deep_gemm/kernel.cuh"

namespace deep_gemm_baseline {

// Where kN and kK are 0, n and k are run-time values.
template <deep_gemm::GemmType kType, int kN, int kK, int kGroups, int kBlockM, int kBlockN,
          int kStages, int kClusterM, int kClusterN>
void launch_fp8(const Gemm& gemm, const Config& config, cudaStream_t stream) {
    constexpr int kMathThreads = kBlockM <= 64 ? 128 : 256;
    constexpr bool kSharesA = kClusterN > 1;
    const auto kernel =
        deep_gemm::sm90_fp8_gemm_1d2d_impl<cute::UMMA::Major::K, 0, kN, kK, kGroups, kBlockM,
                                           kBlockN, 128, 128, 128, swizzle_of_out(kBlockN), kStages,
                                           128, kMathThreads, kClusterM * kClusterN, kSharesA,
                                           kSm90.multiprocessors, kType, cutlass::bfloat16_t>;
    const Problem& problem = gemm.problem;
    const cuuint64_t k = problem.k;
    const cuuint64_t groups = problem.groups;
    const cuuint64_t scale_rows = (static_cast<cuuint64_t>(problem.m) + 3) / 4 * 4;
    const cuuint64_t scale_groups = problem.kind == Kind::kMasked ? groups : 1;
    const Matrix a = {CU_TENSOR_MAP_DATA_TYPE_UINT8, 1, gemm.a, k, all_rows(problem)};
    const Matrix b = {CU_TENSOR_MAP_DATA_TYPE_UINT8, 1, gemm.b, k, groups * problem.n};
    const Matrix scales = {CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 4, gemm.a_scales, scale_rows,
                           k / 128 * scale_groups};
    device::launch("deep_gemm fp8", kernel, launch_shape(config, kSm90.multiprocessors), stream,
                   static_cast<float*>(const_cast<void*>(gemm.b_scales)), gemm.index, problem.m,
                   problem.n, problem.k, tensor_map(a, 128, kBlockM, 128),
                   tensor_map(b, 128, kBlockN, 128), map_of_out(gemm, config),
                   tensor_map(scales, kBlockM, 1, 0));
}

// An entry of a table of what was compiled.
template <Kind kKind, int kN, int kK, int kGroups, int kBlockM, int kBlockN, int kStages,
          int kClusterM, int kClusterN>
constexpr Compiled compiled_fp8() {
    constexpr deep_gemm::GemmType kType = kernel_type(kKind);
    return {kKind,
            kN,
            kK,
            kGroups,
            kBlockM,
            kBlockN,
            kStages,
            kClusterM,
            kClusterN,
            launch_fp8<kType, kN, kK, kGroups, kBlockM, kBlockN, kStages, kClusterM, kClusterN>};
}

}  // namespace deep_gemm_baseline
