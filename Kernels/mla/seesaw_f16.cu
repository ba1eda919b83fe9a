#include "Kernels/mla/launch.h"
#include "Kernels/mla/seesaw_launch.cuh"

namespace mla {

void launch_seesaw_f16(const Arguments& arguments, const Plan& plan, const Shape& sizes,
                       cudaStream_t stream) {
    launch_seesaw<__half>(arguments, plan, sizes, stream);
}

}  // namespace mla
