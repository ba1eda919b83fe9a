#include "Kernels/baselines/deep_gemm/sm90_enqueue.cuh"

namespace deep_gemm_baseline {

// The runtime takes a loaded kernel where it takes a host function's address.
void launch_built_sm90(cudaKernel_t kernel, const Gemm& gemm, const Config& config,
                       cudaStream_t stream) {
    if (gemm.problem.operands == Operands::kFp8) {
        enqueue_fp8(reinterpret_cast<Fp8Kernel>(kernel), gemm, config, stream);
    } else {
        enqueue_bf16(reinterpret_cast<Bf16Kernel>(kernel), gemm, config, stream);
    }
}

}  // namespace deep_gemm_baseline
