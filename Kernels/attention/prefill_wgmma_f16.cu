#include "Kernels/attention/prefill_launch.h"
#include "Kernels/attention/prefill_wgmma_launch.cuh"

namespace attention {

void launch_wgmma_f16(const Prefill& params, cudaStream_t stream) {
    if (params.head_dim == 64) {
        launch_wgmma<WgmmaTraits<__half, 64>>(params, stream);
    } else {
        launch_wgmma<WgmmaTraits<__half, 128>>(params, stream);
    }
}

}  // namespace attention
