#include "Kernels/gemm/hopper_launch.cuh"

namespace gemm {

void launch_hopper_fp8(const Gemm& params, const Config& config, cudaStream_t stream) {
    launch_hopper_type<__nv_fp8_e4m3>(params, config, stream);
}

}  // namespace gemm
