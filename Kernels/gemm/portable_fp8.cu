#include "Kernels/gemm/portable_launch.cuh"

namespace gemm {

void launch_portable_fp8(const Gemm& params, const Config& config, cudaStream_t stream) {
    launch_portable_type<__nv_fp8_e4m3>(params, config, stream);
}

}  // namespace gemm
