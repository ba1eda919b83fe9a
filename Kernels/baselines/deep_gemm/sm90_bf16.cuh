// DeepGEMM's BF16 kernel for sm_90a with its launch.
#pragma once

#include <deep_gemm/impls/sm90_bf16_gemm.cuh>

#include "Kernels/baselines/deep_gemm/kernel.cuh"

namespace deep_gemm_baseline {

// Where kN and kK are 0, n and k are run-time values.
template <deep_gemm::GemmType kType, int kN, int kK, int kGroups, int kBlockM, int kBlockN,
          int kStages, int kClusterM, int kClusterN>
void launch_bf16(const Gemm& gemm, const Config& config, cudaStream_t stream) {
    constexpr int kMathThreads = kBlockM <= 64 ? 128 : 256;
    constexpr bool kSharesA = kClusterN > 1;
    const auto kernel = deep_gemm::sm90_bf16_gemm_impl<
        cute::UMMA::Major::K, cute::UMMA::Major::K, 0, kN, kK, kGroups, kBlockM, kBlockN, 64, 128,
        128, swizzle_of_out(kBlockN), kStages, 128, kMathThreads, kClusterM * kClusterN, kSharesA,
        kSm90.multiprocessors, kType, false, cutlass::bfloat16_t>;
    const Problem& problem = gemm.problem;
    const cuuint64_t k = problem.k;
    const Matrix a = {CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, gemm.a, k, all_rows(problem)};
    const Matrix b = {CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, gemm.b, k,
                      static_cast<cuuint64_t>(problem.groups) * problem.n};
    device::launch("deep_gemm bf16", kernel, launch_shape(config, kSm90.multiprocessors), stream,
                   gemm.index, problem.m, problem.n, problem.k, tensor_map(a, 64, kBlockM, 128),
                   tensor_map(b, 64, kBlockN, 128), map_of_out(gemm, config));
}

// An entry of a table of what was compiled.
template <Kind kKind, int kN, int kK, int kGroups, int kBlockM, int kBlockN, int kStages,
          int kClusterM, int kClusterN>
constexpr Compiled compiled_bf16() {
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
            launch_bf16<kType, kN, kK, kGroups, kBlockM, kBlockN, kStages, kClusterM, kClusterN>};
}

}  // namespace deep_gemm_baseline
