#include "Kernels/baselines/deep_gemm/sm100_enqueue.cuh"

namespace deep_gemm_baseline {

// The runtime takes a loaded kernel where it takes a host function's address.
void launch_built_sm100(cudaKernel_t kernel, const Gemm& gemm, const Config& config,
                        cudaStream_t stream) {
    enqueue_sm100(reinterpret_cast<Sm100Kernel>(kernel), gemm, config, kB200.multiprocessors,
                  stream);
}

}  // namespace deep_gemm_baseline
