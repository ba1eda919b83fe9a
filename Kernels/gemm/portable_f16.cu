#include "Kernels/gemm/portable_launch.cuh"

namespace gemm {

void launch_portable_f16(const Gemm& params, const Config& config, cudaStream_t stream) {
    launch_portable_type<__half>(params, config, stream);
}

}  // namespace gemm
