// DeepGEMM's BF16 kernel for sm_90a with its launch.
#pragma once

#include <deep_gemm/impls/sm90_bf16_gemm.cuh>

#include "Kernels/baselines/deep_gemm/kernel.cuh"
#include "Kernels/baselines/deep_gemm/sm90_enqueue.cuh"

namespace deep_gemm_baseline {

// Where kN and kK are 0, n and k are run-time values.
template <deep_gemm::GemmType kType, int kN, int kK, int kGroups, int kBlockM, int kBlockN,
          int kStages, int kClusterM, int kClusterN>
void launch_bf16(const Gemm& gemm, const Config& config, cudaStream_t stream) {
    constexpr int kMathThreads = kBlockM <= 64 ? 128 : 256;
    constexpr bool kSharesA = kClusterN > 1;
    const Bf16Kernel kernel = deep_gemm::sm90_bf16_gemm_impl<
        cute::UMMA::Major::K, cute::UMMA::Major::K, 0, kN, kK, kGroups, kBlockM, kBlockN, 64, 128,
        128, swizzle_of_out(kBlockN), kStages, 128, kMathThreads, kClusterM * kClusterN, kSharesA,
        kSm90.multiprocessors, kType, false, cutlass::bfloat16_t>;
    enqueue_bf16(kernel, gemm, config, stream);
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
