#include "Kernels/attention/prefill_launch.h"
#include "Kernels/attention/prefill_mma_launch.cuh"

namespace attention {

void launch_mma_bf16(const Prefill& params, cudaStream_t stream) {
    if (params.head_dim == 64) {
        launch_mma<MmaTraits<__nv_bfloat16, 64, 4, 64, 2>>(params, stream);
    } else {
        launch_mma<MmaTraits<__nv_bfloat16, 128, 4, 48, 2>>(params, stream);
    }
}

}  // namespace attention
