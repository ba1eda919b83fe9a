#include "Kernels/norms/norm_backward_launch.cuh"

namespace norms {

void launch_layernorm_backward(const NormBackward& params, const Config& config,
                               cudaStream_t stream) {
    launch_norm_backward<true>(params, config, stream);
}

}  // namespace norms
