#include "Kernels/gemm/hopper_launch.cuh"

namespace gemm {

void launch_hopper_bf16(const Gemm& params, const Config& config, cudaStream_t stream) {
    launch_hopper_type<__nv_bfloat16>(params, config, stream);
}

}  // namespace gemm
