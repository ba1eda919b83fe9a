#include "Kernels/gemm/hopper_launch.cuh"

namespace gemm {

void launch_hopper_f16(const Gemm& params, const Config& config, cudaStream_t stream) {
    launch_hopper_type<__half>(params, config, stream);
}

}  // namespace gemm
