// DeepGEMM's kernel of scaled operands for sm_100a with its launch.
#pragma once

#include <deep_gemm/impls/sm100_fp8_fp4_gemm_1d1d.cuh>

#include "Kernels/baselines/deep_gemm/kernel.cuh"
#include "Kernels/baselines/deep_gemm/sm100_enqueue.cuh"

namespace deep_gemm_baseline {

// An entry of a table of what was compiled. Where kN and kK are 0, n and k are run-time values.
template <int kMultiprocessors, Operands kOperands, Kind kKind, int kN, int kK, int kGroups,
          int kBlockM, int kBlockN, int kClusterM, int kClusterN, bool kSwaps>
struct Sm100 {
    using Operand = cute::conditional_t<kOperands == Operands::kMxfp4, cutlass::float_e2m1_t,
                                        cutlass::float_e4m3_t>;
    static constexpr int kBlockK = 1024 / element_bits(kOperands);
    static constexpr int kDepth = scale_depth(kOperands);
    static constexpr int kStages =
        pipeline_sm100(kOperands, kBlockM, kBlockN, kClusterM, kClusterN, kSwaps).stages;
    static constexpr int kStoreStages = 2, kThreads = 128;

    static void launch(const Gemm& gemm, const Config& config, cudaStream_t stream) {
        const Sm100Kernel kernel = deep_gemm::sm100_fp8_fp4_gemm_1d1d_impl<
            cute::UMMA::Major::K, cute::UMMA::Major::K, kDepth, kDepth, kDepth, 0, kN, kK, kBlockM,
            kBlockN, kBlockK, kGroups, 128, 128, swizzle_of_out(kBlockN), kStages, kStoreStages,
            kThreads, kThreads, kClusterM * kClusterN, (kClusterN > 1), kMultiprocessors, kSwaps,
            true, kernel_type(kKind), false, Operand, Operand, cutlass::bfloat16_t,
            deep_gemm::epilogue::operators::Identity>;
        enqueue_sm100(kernel, gemm, config, kMultiprocessors, stream);
    }

    static constexpr Compiled compiled() {
        return {kKind,   kN,        kK,        kGroups, kBlockM, kBlockN,
                kStages, kClusterM, kClusterN, launch,  kSwaps};
    }
};

}  // namespace deep_gemm_baseline
