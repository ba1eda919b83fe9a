#include "Kernels/decode/launch_decode.cuh"

namespace decode {

void launch_bf16(const Arguments& arguments, const Shape& shape, const Plan& plan,
                 cudaStream_t stream) {
    launch_type<__nv_bfloat16>(arguments, shape, plan, stream);
}

}  // namespace decode
