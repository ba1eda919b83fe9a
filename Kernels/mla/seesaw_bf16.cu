#include "Kernels/mla/launch.h"
#include "Kernels/mla/seesaw_launch.cuh"

namespace mla {

void launch_seesaw_bf16(const Arguments& arguments, const Plan& plan, const Shape& sizes,
                        cudaStream_t stream) {
    launch_seesaw<__nv_bfloat16>(arguments, plan, sizes, stream);
}

}  // namespace mla
