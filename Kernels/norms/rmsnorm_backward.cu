#include "Kernels/norms/norm_backward_launch.cuh"

namespace norms {

void launch_rmsnorm_backward(const NormBackward& params, const Config& config,
                             cudaStream_t stream) {
    launch_norm_backward<false>(params, config, stream);
}

}  // namespace norms
